"""Every problem: each module here that has a PROBLEMS list adds to it."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from benchmarks.base import Problem


def all_problems() -> list[Problem]:
    names = sorted(module.name for module in iter_modules(__path__))
    return [p for name in names for p in import_module(f"{__name__}.{name}").PROBLEMS]
