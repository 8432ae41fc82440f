"""The contract's limits, checked before anything is read or written.

Lives here: the checks that every engine makes of what it is handed. Must not live here: the limits
themselves (base.py), or what an engine does with a commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from strongroom.engines.base import (
    COMMIT_BYTES_MAX,
    COMMIT_WRITES_MAX,
    KEY_BYTES_MAX,
    KEYSPACE_BYTES_MAX,
    PARTITION_BYTES_MAX,
    RECORD_BYTES_MAX,
    Partition,
    Ref,
    Step,
)


class Weight(msgspec.Struct, frozen=True):
    """What a commit costs: `size_bytes` of keys and values, whether it takes something away, and
    whether it adopts contents.

    A commit that takes away deletes a record or drops a content, and adopts none: on a full disk it
    may use the space that is kept back.
    """

    size_bytes: int
    takes_away: bool
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


def check_steps(steps: Sequence[Step]) -> Weight:
    """Weigh a commit; raise ValueError when it passes a limit of the contract."""
    size_bytes = writes = contents = 0
    removes = adopts = False
    for step in steps:
        check_partition(step.partition)
        writes += len(step.writes)
        contents += len(step.adopt) + len(step.drop)
        adopts = adopts or bool(step.adopt)
        removes = removes or bool(step.drop)
        for (_, name), value in step.writes:
            key_bytes = len(name)
            if key_bytes > KEY_BYTES_MAX:
                raise ValueError(f"a key is at most {KEY_BYTES_MAX} bytes long")
            size_bytes += key_bytes
            if value is None:
                removes = True
            else:
                value_bytes = len(value)
                size_bytes += value_bytes
                if value_bytes > RECORD_BYTES_MAX:
                    raise ValueError(f"a record is at most {RECORD_BYTES_MAX} bytes long")
    if writes > COMMIT_WRITES_MAX or contents > COMMIT_WRITES_MAX:
        raise ValueError(f"a commit has at most {COMMIT_WRITES_MAX} writes, and as many contents")
    if size_bytes > COMMIT_BYTES_MAX:
        raise ValueError(f"a commit is at most {COMMIT_BYTES_MAX} bytes long")
    return Weight(size_bytes, removes and not adopts, adopts)
