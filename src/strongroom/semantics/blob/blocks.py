"""Block blobs: the rules for block ids, and which blocks a committed list names.

Sources: "Put Block", "Put Block List".
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from strongroom import limits
from strongroom.errors import blob as blob_errors
from strongroom.errors.core import StorageError, invalid_query
from strongroom.values import BlockListKind

Block = TypeVar("Block")

Sources = Mapping[BlockListKind, tuple[Mapping[bytes, Block], ...]]
"""Where the entries of each kind look for their blocks, by decoded id: in which order."""


def block_id(text: str) -> bytes:
    """The decoded id of the query parameter blockid: base64 of 1 to 64 bytes."""
    decoded = _decoded(text)
    if decoded is None:
        raise invalid_query("blockid", text, "Not a valid base64 string of 1 to 64 bytes.")
    return decoded


def block_id_text(decoded: bytes) -> str:
    """The id as Get Block List writes it."""
    return base64.b64encode(decoded).decode("ascii")


def check_id_length(decoded: bytes, length_bytes: int | None) -> None:
    """All of a blob's staged ids have one length; None when there are none."""
    if length_bytes is not None and len(decoded) != length_bytes:
        raise StorageError(blob_errors.INVALID_BLOB_OR_BLOCK)


def require_list_length(count: int) -> None:
    if count > limits.COMMITTED_BLOCKS_MAX:
        raise StorageError(blob_errors.BLOCK_LIST_TOO_LONG)


def check_staged_count(count: int) -> None:
    """`count` includes the new block."""
    if count > limits.UNCOMMITTED_BLOCKS_MAX:
        raise StorageError(
            blob_errors.BLOCK_COUNT_EXCEEDS_LIMIT,
            "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.",
        )


def shares_of_limit(counts: Mapping[int, int]) -> dict[int, int]:
    """Divide the uncommitted blocks that are still permitted equally among several gateways.

    Arguments:
        counts: how many blocks each gateway has counted so far, by its number. Counts below zero
            are permitted, a sum above the limit is not.

    Returns: the highest count that each may reach. The sum is the limit.
    """
    each, left = divmod(limits.UNCOMMITTED_BLOCKS_MAX - sum(counts.values()), len(counts))
    order = enumerate(sorted(counts.items()))
    return {gateway: count + each + (place < left) for place, (gateway, count) in order}


def block_sources(
    committed: Mapping[bytes, Block], uncommitted: Mapping[bytes, Block]
) -> Sources[Block]:
    """Where the entries of each kind search for their blocks.

    Arguments:
        committed: the blob's present blocks by decoded id; of two with the same id, the first.
        uncommitted: the staged blocks by decoded id.
    """
    return {
        "Committed": (committed,),
        "Uncommitted": (uncommitted,),
        "Latest": (uncommitted, committed),
    }


def named_blocks(
    requested: Iterable[tuple[BlockListKind, str]], sources: Sources[Block]
) -> Iterator[Block]:
    """The blocks that the entries of a list name, in its order. A block may be named several
    times."""
    for kind, text in requested:
        decoded = _decoded(text)
        block = None if decoded is None else _first(decoded, sources[kind])
        if block is None:
            raise StorageError(blob_errors.INVALID_BLOCK_LIST)
        yield block


def _first(decoded: bytes, places: tuple[Mapping[bytes, Block], ...]) -> Block | None:
    for place in places:
        block = place.get(decoded)
        if block is not None:
            return block
    return None


_TEXT_CHARS_MAX: Final = (limits.BLOCK_ID_BYTES_MAX + 2) // 3 * 4


def _decoded(text: str) -> bytes | None:
    if len(text) > _TEXT_CHARS_MAX:
        return None
    try:
        decoded = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return decoded if 1 <= len(decoded) <= limits.BLOCK_ID_BYTES_MAX else None
