"""The fields of append blobs: their two conditions.

One named field per operation, since the conditions are checked together
(semantics/blob/appends.py). Source: "Append Block" and "Append Blob Seal", request headers.
"""

from __future__ import annotations

from typing import Final

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.operations.core.fields import filled, integer
from strongroom.operations.core.spec import Field
from strongroom.semantics.blob.appends import NO_CONDITIONS, AppendConditions
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query

POSITION: Final = "x-ms-blob-condition-appendpos"
MAX_SIZE: Final = "x-ms-blob-condition-maxsize"
_length: Final = integer(0, 2**63 - 1)


def _conditions(request: Request, query: Query) -> AppendConditions:
    position, max_size = filled(request, POSITION), filled(request, MAX_SIZE)
    if position is max_size is None:
        return NO_CONDITIONS
    return AppendConditions(
        None if position is None else _length(POSITION, position),
        None if max_size is None else _length(MAX_SIZE, max_size),
    )


def _position(request: Request, query: Query) -> AppendConditions:
    if filled(request, MAX_SIZE) is not None:
        raise StorageError(errors.CONDITION_HEADERS_NOT_SUPPORTED)
    return _conditions(request, query)


CONDITIONS: Final = Field("conditions", _conditions, headers=(POSITION, MAX_SIZE))
ONLY_POSITION: Final = Field("conditions", _position, headers=(POSITION, MAX_SIZE))
"""The conditions of a seal; the maximal size is refused."""
