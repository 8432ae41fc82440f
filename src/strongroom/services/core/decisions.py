"""The form of a decision: which records it reads, and what it commits because of them.

Lives here: `Decision`, the base class of all of them. Must not live here: any one decision, the
engine's loop that runs them (engines/). Source: rule 4 of engines/base.py.

A decision is a frozen value. Its fields hold everything that it depends on: the request, wall time,
account settings, fresh ids. So it can run again with the same outcome. It returns its results in
the commit and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from strongroom.engines.base import Commit, Partition, Record, Ref
from strongroom.values import Purpose

T = TypeVar("T")


class Decision(msgspec.Struct, Generic[T], frozen=True):
    """One decision, which the engine runs at the serial point. `Services.commit` submits it.

    Arguments:
        partition: the partition that it changes, and whose records guard the commit.
        reads: the records that it is given, in this order; those of other partitions are inputs.
        purpose: what it may use on a full disk.
    """

    partition: Partition
    reads: Sequence[Ref]
    purpose: Purpose

    def decide(self, found: Sequence[Record | None], stamp: int) -> Commit[T]:
        """Return the commit. An exception refuses the request and changes nothing.

        Arguments:
            found: the records of `reads`.
            stamp: the commit's stamp, in store time.
        """
        # Every kind of decision overrides it; the base itself is never run.
        raise NotImplementedError
