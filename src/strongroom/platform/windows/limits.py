"""Limits of open files. The C library of Windows allows 8,192, far more than its sockets."""

from __future__ import annotations


def open_files_limits() -> tuple[int | None, int | None] | None:
    return None


def set_open_files_limits(soft: int, hard: int | None) -> None:
    """There is nothing to set."""
