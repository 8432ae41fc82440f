"""The single translation of engine errors to the errors that a caller sees.

Source: design of the engine contract (engines/base.py); 507 is ours.
"""

from __future__ import annotations

from typing import TypeAlias

from strongroom.engines.base import Busy, EngineError, Full
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError

BROKEN: TypeAlias = EngineError
"""The base class of the engine's errors, which every layer above catches."""


def refusal_of(error: EngineError) -> StorageError:
    """507 InsufficientStorage when the disk is full, 503 ServerBusy when a retry may succeed,
    otherwise 500.

    After a 500 it is unknown whether the request was carried out. The engine's log says why.
    """
    if isinstance(error, Full):
        return StorageError(errors.INSUFFICIENT_STORAGE, str(error))
    if isinstance(error, Busy):
        return StorageError(errors.SERVER_BUSY)
    return StorageError(errors.INTERNAL_ERROR)
