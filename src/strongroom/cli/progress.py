"""Progress of long commands, on a terminal only, so that a log file stays clean.

Lives here: the progress bar.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""progress(units done, total units)."""


@contextmanager
def progress_bar(title: str, quiet: bool) -> Iterator[Progress | None]:
    """Show a bar on standard error while the block runs; yield None if nobody would see it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
