"""The outcome of a call as `status code`, for tables of expected outcomes."""

from __future__ import annotations

from collections.abc import Callable

from strongroom.errors.core import StorageError

OK = "ok"


def outcome(call: Callable[[], object]) -> str:
    """Return `ok`, or the refusal as `412 LeaseLost`."""
    try:
        call()
    except StorageError as error:
        return f"{error.row.status} {error.row.code}"
    return OK


def refusal(call: Callable[[], object]) -> StorageError | None:
    """Return the refusal itself; None if there was none."""
    try:
        call()
    except StorageError as error:
        return error
    return None
