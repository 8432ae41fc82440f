"""The contract's limits, checked before anything is read or written.

Lives here: the checks that every engine makes of its arguments. Must not live here: the limits
themselves (base.py), or what an engine does with a commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from strongroom.engines.base import (
    COMMIT_BYTES_MAX,
    COMMIT_WRITES_MAX,
    KEY_BYTES_MAX,
    KEYSPACE_BYTES_MAX,
    PARTITION_BYTES_MAX,
    RECORD_BYTES_MAX,
    VERIFIED_BYTES_MAX,
    Partition,
    Record,
    Ref,
    Step,
)
from strongroom.values import Purpose


class Weight(msgspec.Struct, frozen=True):
    """The cost of a commit: `size_bytes` of keys and values, and whether it adopts contents."""

    size_bytes: int
    adopts: bool


def check_partition(partition: Partition) -> None:
    """Raise ValueError for a keyspace or partition name that is too long."""
    keyspace, name = partition
    if len(keyspace) > KEYSPACE_BYTES_MAX:
        raise ValueError(f"a keyspace is at most {KEYSPACE_BYTES_MAX} bytes long")
    if len(name) > PARTITION_BYTES_MAX:
        raise ValueError(f"a partition name is at most {PARTITION_BYTES_MAX} bytes long")


def check_reads(reads: Iterable[Ref]) -> None:
    """Raise ValueError for an address that is too long."""
    for partition, (_, name) in reads:
        keyspace, partition_name = partition
        if len(keyspace) > KEYSPACE_BYTES_MAX or len(partition_name) > PARTITION_BYTES_MAX:
            check_partition(partition)
        if len(name) > KEY_BYTES_MAX:
            raise ValueError(f"a key is at most {KEY_BYTES_MAX} bytes long")


def check_small(bodies: Iterable[bytes | memoryview]) -> None:
    """Raise ValueError for a body that is too long to be written with others."""
    if any(len(body) > VERIFIED_BYTES_MAX for body in bodies):
        raise ValueError(f"each of several bodies is at most {VERIFIED_BYTES_MAX} bytes long")


def check_steps(steps: Sequence[Step]) -> Weight:
    """Return the weight of a commit. Raise ValueError when it exceeds a limit of the contract."""
    size_bytes = writes = contents = 0
    adopts = False
    for step in steps:
        check_partition(step.partition)
        writes += len(step.writes)
        contents += len(step.adopt) + len(step.drop)
        adopts = adopts or bool(step.adopt)
        for (_, name), value in step.writes:
            key_bytes = len(name)
            if key_bytes > KEY_BYTES_MAX:
                raise ValueError(f"a key is at most {KEY_BYTES_MAX} bytes long")
            size_bytes += key_bytes
            if value is not None:
                value_bytes = len(value)
                size_bytes += value_bytes
                if value_bytes > RECORD_BYTES_MAX:
                    raise ValueError(f"a record is at most {RECORD_BYTES_MAX} bytes long")
    if writes > COMMIT_WRITES_MAX or contents > COMMIT_WRITES_MAX:
        raise ValueError(f"a commit has at most {COMMIT_WRITES_MAX} writes, and as many contents")
    if size_bytes > COMMIT_BYTES_MAX:
        raise ValueError(f"a commit is at most {COMMIT_BYTES_MAX} bytes long")
    return Weight(size_bytes, adopts)


def purpose_of(
    declared: Purpose,
    adopts: bool,
    writes: Mapping[Ref, bytes | None],
    before: Callable[[Ref], Record | None],
) -> Purpose:
    """Return the purpose of a commit: the declared one, or a higher one that its writes show (rule
    6 of base.py).

    Arguments:
        adopts: whether the commit adopts contents.
        writes: the new values of its records; None = deleted.
        before: returns the current record.
    """
    if adopts or declared is Purpose.FREEING:
        return declared
    if all(value is None for value in writes.values()):
        return Purpose.FREEING
    if declared is Purpose.GROWTH and growth_bytes(writes, before) <= 0:
        return Purpose.UPKEEP
    return declared


def growth_bytes(writes: Mapping[Ref, bytes | None], before: Callable[[Ref], Record | None]) -> int:
    """Return by how many bytes the keys and values of all records grow together; negative if they
    shrink. For the arguments see `purpose_of`."""
    growth = 0
    for ref, value in writes.items():
        name_bytes = len(ref.key.name)
        record = before(ref)
        growth += 0 if value is None else name_bytes + len(value)
        growth -= 0 if record is None else name_bytes + len(record.value)
    return growth


def values_after(steps: Iterable[Step]) -> dict[Ref, bytes | None]:
    """Return the final values of the records that the steps write."""
    return {Ref(step.partition, key): value for step in steps for key, value in step.writes}
