"""What the parts that write, read and remove contents have in common.

Lives here: values, and the form of a checksum in a row. Must not live here: any statement.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from strongroom.engines.bodies.base import BodyStore
from strongroom.engines.gateways import ReaderMark

APART_BYTES: Final = 1024 * 1024
"""Longer bodies lie apart, where there is a place for them."""
BATCH_MAX: Final = 32
SIGN: Final = 1 << 63


class ContentWriter(msgspec.Struct, frozen=True):
    """What contents need of their gateway.

    Attributes:
        new_id: gives the id of a new content, greater than all before.
        ensure_serving: raises Unavailable unless the gateway may serve.
        begin_reading: see Gateways.
    """

    number: int
    incarnation: int
    new_id: Callable[[], int]
    ensure_serving: Callable[[], Awaitable[None]]
    begin_reading: Callable[[], ReaderMark]


class ApartBodies(msgspec.Struct, frozen=True):
    """The place of long bodies.

    Attributes:
        above_bytes: bodies that are longer lie there.
    """

    store: BodyStore
    above_bytes: int = APART_BYTES


class BodyRow(msgspec.Struct, frozen=True):
    """A row of `contents` to be written; `data` None = it is in chunks, and not all are there."""

    id: int
    size_bytes: int
    crc64: int
    data: bytes | None


def signed(checksum: int) -> int:
    """A checksum as PostgreSQL keeps it, which has no unsigned numbers."""
    return checksum - 2 * SIGN if checksum >= SIGN else checksum
