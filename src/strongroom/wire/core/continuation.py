"""Continuation tokens: where the next page of entities or tables begins, as opaque text.

    1!<characters that follow>!<base64>        with - for =, _ for / and * for +

Source: "Query timeout and pagination". A client returns the text unchanged, so any other text is
refused.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError

NEXT_PARTITION_KEY: Final = "NextPartitionKey"
NEXT_ROW_KEY: Final = "NextRowKey"
NEXT_TABLE_NAME: Final = "NextTableName"
_TOKEN: Final = re.compile(r"1!([0-9]{1,4})!([0-9A-Za-z*_-]*)")
_POSITION_BYTES_MAX: Final = 2048
_STANDARD: Final = str.maketrans("*_-", "+/=")
_ON_THE_WIRE: Final = str.maketrans("+/=", "*_-")


def encode(position: bytes) -> str:
    """`position` is a key, a table's name, or a place between two of them."""
    text = base64.b64encode(position).decode("ascii").translate(_ON_THE_WIRE)
    return f"1!{len(text)}!{text}"


def decode(name: str, token: str) -> bytes:
    """The position in a token that `encode` made. `name` is the parameter's, for the error
    message."""
    match = _TOKEN.fullmatch(token)
    if match is None or int(match[1]) != len(match[2]):
        raise _invalid(name)
    try:
        position = base64.b64decode(match[2].translate(_STANDARD), validate=True)
    except ValueError:
        raise _invalid(name) from None
    if len(position) > _POSITION_BYTES_MAX or encode(position) != token:
        raise _invalid(name)
    return position


def decode_keys(partition: str | None, row: str | None) -> tuple[bytes, bytes] | None:
    """The position of NextPartitionKey and NextRowKey, None when neither was sent."""
    if partition is None:
        if row is not None:
            raise _invalid(NEXT_ROW_KEY)
        return None
    name = decode(NEXT_PARTITION_KEY, partition)
    return name, b"" if row is None else decode(NEXT_ROW_KEY, row)


def _invalid(name: str) -> StorageError:
    message = f"{errors.INVALID_INPUT.message} {name} is not a token that a query has returned."
    return StorageError(errors.INVALID_INPUT, message)
