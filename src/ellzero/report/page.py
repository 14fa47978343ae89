"""A study as one HTML file that loads nothing."""

from __future__ import annotations

from typing import Any


def render(study: dict[str, Any]) -> str:
    """One self-contained HTML file."""
    raise NotImplementedError
