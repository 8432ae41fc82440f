"""The ledgers of a queue's epoch: each gateway counts the messages that it puts and removes.

Lives here: which ledger a decision of this gateway reads and writes, how it begins, and all of them
together. So gateways that put into one queue change no record in common. Must not live here: what a
change of messages does to a ledger (message_changes.py).

A queue begins with the ledger of gateway 0. A gateway that begins its own writes that one again,
with its number in it. So whoever watches all ledgers that exist also notices a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec

from strongroom.engines.base import Commit, Key, Partition, Ref, Step, Write
from strongroom.engines.gateways import GATEWAYS_MAX
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.store.core import gateway_keys, keys
from strongroom.store.core.records import DamagedRecord
from strongroom.store.queue.message_records import LEDGER, Ledger

T = TypeVar("T")


class LedgerMissing(Exception):
    """This gateway has not begun its ledger in the epoch; nothing was changed."""

    def __init__(self, ref: Ref) -> None:
        super().__init__(ref)
        self.ref = ref


class StoredLedger(NamedTuple):
    ref: Ref
    value: Ledger
    version: int


def add_own(services: Services, reads: Reads, partition: Partition) -> ReadOne[Ledger]:
    """Add the ledger that decisions of this gateway write."""
    gateways = services.store.gateways
    # Alone, any gateway may write the first ledger: no other one changes it meanwhile.
    number = 0 if gateways.is_alone else gateways.number
    return reads.add(Ref(partition, gateway_keys.ledger(number)), LEDGER)


def own(found: Found, read: ReadOne[Ledger]) -> Ledger:
    """Return the gateway's ledger in an epoch that has not ended. Raises: LedgerMissing."""
    ledger = found[read]
    if ledger is None:
        raise LedgerMissing(read.ref)
    return ledger


async def commit(services: Services, decision: Decision[T]) -> T:
    """Commit a decision that uses `own`. Its ledger is begun if it has none."""
    try:
        return await services.commit(decision)
    except LedgerMissing as missing:
        await _begin(services, missing.ref, decision)
    try:
        return await services.commit(decision)
    except LedgerMissing:
        raise DamagedRecord("a queue has no ledger") from None


async def _begin(services: Services, ref: Ref, decision: Decision[T]) -> None:
    reads = Reads()
    first = reads.add(Ref(ref.partition, keys.LEDGER_KEY), LEDGER)
    begun = reads.add(ref, LEDGER)
    await services.commit(
        _Begin(ref.partition, reads.refs, decision.purpose, first=first, begun=begun)
    )


class _Begin(Decision[None], frozen=True):
    first: ReadOne[Ledger]
    begun: ReadOne[Ledger]

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        """Without the first ledger the epoch has ended, and nothing is begun."""
        first, number = found[self.first], gateway_keys.ledger_gateway(self.begun.ref.key.name)
        if first is None or found[self.begun] is not None or number is None:
            return Commit(None)
        named = msgspec.structs.replace(first, others=(*first.others, number))
        writes = (
            Write(keys.LEDGER_KEY, LEDGER.encode(named)),
            Write(self.begun.ref.key, LEDGER.encode(Ledger())),
        )
        return Commit(None, (Step(self.partition, writes),))


async def read_all(services: Services, partition: Partition) -> Sequence[StoredLedger]:
    """Return the ledgers of all gateways, from one snapshot; none = the epoch was swept."""
    store, first = services.store, Ref(partition, keys.LEDGER_KEY)
    if store.gateways.is_alone:
        # As a rule there is only this one, and a single record is read faster than a range.
        (record,) = await store.read([first])
        if record is None:
            return ()
        ledger = LEDGER.decode(record.value)
        if not ledger.others:
            return (StoredLedger(first, ledger, record.version),)
    items = await store.read_range(partition, True, *gateway_keys.ledger_range(), GATEWAYS_MAX)
    return [
        StoredLedger(Ref(partition, Key(True, one.name)), LEDGER.decode(one.value), one.version)
        for one in items
    ]
