"""Following a chain of records one by one, for engines that have a snapshot at hand.

Lives here: the loop, and the check of its arguments. Must not live here: where a record comes from
(the engines), the layout of a chain (links.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from strongroom.engines.base import (
    KEY_BYTES_MAX,
    Partition,
    Record,
    Ref,
    key_of,
    ref_of,
)
from strongroom.engines.bounds import check_partition
from strongroom.engines.links import Links


def follow_chain(
    partition: Partition,
    links: Links,
    first: bytes,
    names: Sequence[bytes],
    get: Callable[[Ref], Record | None],
) -> list[tuple[Ref, Record | None]]:
    """Return what Engine.follow returns.

    Arguments:
        get: returns a record; all of them come from one snapshot. It is called in the order of the
            chain.

    Raises: ValueError as Engine.follow; what `get` raises.
    """
    check_partition(partition)
    at: bytes | None = first
    chain: list[tuple[Ref, Record | None]] = []
    if max(len(first), links.id_bytes) + max(map(len, names), default=0) > KEY_BYTES_MAX:
        raise ValueError(f"a key is at most {KEY_BYTES_MAX} bytes long")
    for name in names:
        if at is None:
            break
        ref = ref_of((partition, key_of((links.hidden, at + name))))
        record = get(ref)
        chain.append((ref, record))
        at = None if record is None else links.next_id(record[0])
    return chain
