"""What one attempt to hold a lock asks for, and what it may decide to do next.

Lives here: plain data. Must not live here: the decisions themselves, effects (lock_core.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from strongroom.coordination.schema.records import LockRecord


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """The parameters of one attempt to hold a lock.

    Attributes:
        key, name: of the record, and of the lock as messages name it.
        ttl_s: how long the hold lasts without renewal.
        wait_s: how long to wait for the lock; 0 tries once, None waits for ever.
        fair: wait in the record's queue.
        lock_delay_s: how much longer to wait after a hold that EXPIRED (not after a release): a
            mitigation for resources that cannot check the fence.
        value: JSON that the record carries (elections).
        margin_s: how long before its deadline the hold ends already.
    """

    key: str
    name: str
    ttl_s: float
    wait_s: float | None
    fair: bool = False
    lock_delay_s: float = 0.0
    value: Any = None
    margin_s: float = 0.0


class LockPause(NamedTuple):
    """A decision to wait for so many seconds, or until `ahead` other waiters had their turn."""

    seconds: float
    ahead: int = 0


class LockWrite(NamedTuple):
    """A decision to write a record that acquires the lock, or only changes the queue.

    `ends` is the nonce of this client's ended hold that the record shows; None if there is none.
    """

    record: LockRecord
    acquires: bool
    ends: str | None = None


class AlreadyAcquired(NamedTuple):
    """A decision to use the record as it is: an unanswered write of ours took the lock."""

    record: LockRecord
