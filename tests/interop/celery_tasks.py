"""The tasks of the Celery worker; the environment names its broker and its output file."""

from __future__ import annotations

import os
from pathlib import Path

from celery import Celery  # type: ignore[import-untyped]  # has no types

app = Celery("tasks", broker=os.environ["BROKER"])
app.conf.task_ignore_result = True
app.conf.worker_enable_remote_control = False


@app.task  # type: ignore[untyped-decorator]  # has no types
def note(text: str) -> None:
    """Append a line."""
    with Path(os.environ["NOTES"]).open("a", encoding="utf-8") as notes:
        notes.write(f"{text}\n")
