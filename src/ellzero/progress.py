"""A bar while work goes on: on a terminal and with rich installed, otherwise nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal


@contextmanager
def progress(
    label: str, total: int | None, unit: Literal["bytes", "jobs"] = "bytes"
) -> Iterator[Callable[[int], None]]:
    """Show a bar; give a function to call with the bytes that came in, or the size of a job."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda n: None
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
        )
        from rich.progress import TimeRemainingColumn as TimeLeft
    except ImportError:
        yield lambda n: None
        return
    done = DownloadColumn() if unit == "bytes" else TaskProgressColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), done, TimeLeft())
    average = 30 if unit == "bytes" else 3600  # seconds; jobs come in one by one
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,  # which replaces the streams of the process
        redirect_stderr=False,
        speed_estimate_period=average,
    ) as bar:
        task = bar.add_task(label, total=total)
        yield lambda n: bar.advance(task, n)
