"""Get Messages, Peek Messages: the messages that can be seen now, the longest visible first.

Lives here: the look for messages, which reads a range and decides nothing, and the decision, which
takes those of them that are still there. Must not live here: what taking makes of a message
(semantics/queue/messages.py), waiting as such (waiting.py). Sources: "Get Messages", "Peek
Messages".

A message that was looked at is guarded by its own key, since taking, updating or deleting moves it
elsewhere. So of several retrievals one gets it, and the others look again. The claims of this
gateway keep its retrievals from wanting the same in the first place. A gateway that loses messages
to another one begins its looks behind the oldest ones for a while.

An answer without messages is given only after a look that found none and left none to others. What
those take can be seen again if they fail. So there is no limit of looks. A look whose messages are
all gone lost them to commits of others; of all who look, some get something each time.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from strongroom import errors, limits, queue_errors
from strongroom.engines.base import Commit, Item, Key, Partition, Record, Ref
from strongroom.errors import StorageError
from strongroom.semantics.queue import messages, pop_receipts
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision
from strongroom.services.core.places import place_ref
from strongroom.services.core.runner import Services
from strongroom.services.core.waiting import NotYet
from strongroom.services.queue.claims import Claim, Claims, Distances
from strongroom.services.queue.expired_front import ExpiredFronts
from strongroom.services.queue.message_changes import MessagesChange
from strongroom.services.queue.messages import MessageView
from strongroom.services.queue.queues import queue_in, queue_of
from strongroom.store.core import keys
from strongroom.store.core.records import DamagedRecord, QueueRecord
from strongroom.store.queue import message_records
from strongroom.store.queue.message_records import MessageRecord

Messages = tuple[MessageView, ...]

# After so many looks that gave nothing, a retrieval wants what others have claimed as well.
_POLITE_LOOKS: Final = 15
# Peek Messages reads again what changed while it was read, so many times.
_PEEKS: Final = 16
_PAGE_RECORDS_MAX: Final = 120


class GetMessages(msgspec.Struct, frozen=True):
    """Input of Get Messages."""

    count: int = 1
    visibility_s: int = limits.DEFAULT_VISIBILITY_S


class PeekMessages(msgspec.Struct, frozen=True):
    """Input of Peek Messages."""

    count: int = 1


class _Seen(NamedTuple):
    """A message that was looked at, with its whole text; None = that was gone already."""

    key: Key
    record: MessageRecord
    text: str | None


@dataclass(slots=True)
class _Look:
    """The result of a look.

    Attributes:
        now: store time of the look.
        found: messages to take.
        expired: expired ones, to be removed in passing.
        until: when more can be seen by time alone; None = never.
        front: all before it has expired, and nothing will come to lie there.
        only_expired: nothing but expired messages was seen so far.
        ends_expired: when the last message of that beginning could be seen, and where it ends.
        committed: the greatest stamp that was seen.
    """

    now: int
    found: list[_Seen] = field(default_factory=list)
    expired: list[_Seen] = field(default_factory=list)
    until: int | None = None
    front: bytes | None = None
    only_expired: bool = True
    ends_expired: tuple[int, bytes] = (0, b"")
    committed: int = 0


async def get_messages(services: Services, call: Call[GetMessages]) -> Messages:
    """Get Messages: up to `count`, which are then hidden for `visibility_s`.

    With `x-strongroom-wait` it is answered when there is a message or the time is up. Those who
    wait at this gateway are served in order of arrival.

    Raises: StorageError QueueNotFound; InsufficientAccountPermissions on the secondary endpoint: to
        get a message is to change it.
    """
    if call.target.secondary:
        message = "Messages are not taken from the secondary endpoint."
        raise StorageError(errors.INSUFFICIENT_ACCOUNT_PERMISSIONS, message)
    if not call.terms.wait_s:
        return await _get(services, call)
    nothing = StorageError(queue_errors.MESSAGE_NOT_FOUND)

    async def attempt() -> Messages:
        return await _get(services, call, nothing)

    try:
        return await services.waiting.in_turn(
            place_ref(call), call.terms.wait_s, nothing, attempt, call.client
        )
    except StorageError as error:
        if error is not nothing:
            raise
        return ()


async def _get(
    services: Services, call: Call[GetMessages], nothing: StorageError | None = None
) -> Messages:
    """Take what can be seen now.

    Arguments:
        nothing: raised as NotYet instead of returning nothing.
    """
    decided = 0
    for looks in itertools.count():
        # Who waits comes here again after a while.
        again = looks > 0 or nothing is not None
        queue, version = await queue_of(services, call, again)
        partition = keys.message_partition(queue.generation, queue.epoch)
        ledger_ref = Ref(partition, keys.LEDGER_KEY)
        # Before the look: what is put after it has changed the ledger since.
        ledger = (await services.store.read([ledger_ref]))[0] if nothing is not None else None
        with services.disposable.of(Claims).hold(partition, looks >= _POLITE_LOOKS) as claim:
            look = await _look(services, partition, call.input.count, claim, decided)
            taken: Messages = ()
            if look.found or look.expired:
                taken, decided = await _take(services, call, queue, look)
            elif claim.passed_over:
                await claim.given_back()
        if taken:
            return taken
        if look.found:
            services.disposable.of(Distances).lost(partition)
        # A client that has gone must not keep looking.
        if call.client.gone or not (look.found or claim.passed_over):
            break
    if nothing is None:
        return ()
    watched = [(place_ref(call), version), (ledger_ref, None if ledger is None else ledger.version)]
    raise NotYet(nothing, watched, look.now, look.until)


async def _take(
    services: Services, call: Call[GetMessages], queue: QueueRecord, look: _Look
) -> tuple[Messages, int]:
    """Take those that are still where they were seen, and remove the expired ones among them.

    Returns: what was taken, and at which store time.
    """
    partition = keys.message_partition(queue.generation, queue.epoch)
    seen = (*look.found, *look.expired)
    reads = [place_ref(call)]
    # What is only moved is counted as before: then the ledger is not looked at.
    reads += [Ref(partition, keys.LEDGER_KEY)] if look.expired else []
    reads += [Ref(partition, one.key) for one in seen]
    take = _Take(partition, reads, call.rule.purpose, call.as_of_now(), queue, seen)
    return await services.commit(take)


class _Take(Decision[tuple[Messages, int]], frozen=True):
    """Get those of `seen` that are still there, and remove those that have expired."""

    call: Call[GetMessages]
    queue: QueueRecord
    seen: tuple[_Seen, ...]

    def decide(self, found: Sequence[Record | None], stamp: int) -> Commit[tuple[Messages, int]]:
        """See Decision.decide. Nothing is taken when nothing of it was left."""
        queue, records = self.queue, iter(found)
        if queue_in(self.call, next(records)).epoch != queue.epoch:
            return Commit(((), stamp))
        counts = self.reads[1].key == keys.LEDGER_KEY
        ledger = message_records.LEDGER.of(next(records)) if counts else None
        change = MessagesChange(queue.generation, queue.epoch, stamp, ledger)
        there = [one for one, record in zip(self.seen, records, strict=True) if record is not None]
        taken = [
            _taken(change, one, queue.secret, self.call.input.visibility_s, stamp)
            for one in there
            if not messages.is_expired(one.record.message, stamp)
        ]
        if ledger is not None:
            for one in there:
                if messages.is_expired(one.record.message, stamp):
                    change.remove(one.key, one.record)
        return Commit((tuple(taken), stamp), change.steps())


def _taken(
    change: MessagesChange, seen: _Seen, secret: bytes, visibility_s: int, stamp: int
) -> MessageView:
    if seen.text is None:
        raise DamagedRecord("a message is there, and its text is not")
    message = messages.get(seen.record.message, visibility_s, stamp)
    place = change.move(seen.key, seen.record, message)
    return MessageView(message, pop_receipts.seal(secret, place), seen.text)


async def peek_messages(services: Services, call: Call[PeekMessages]) -> Messages:
    """Peek Messages: what Get Messages would take, as it is; nothing changes.

    Raises: StorageError QueueNotFound.
    """
    for looks in range(_PEEKS):
        queue, _ = await queue_of(services, call, again=looks > 0)
        partition = keys.message_partition(queue.generation, queue.epoch)
        look = await _look(services, partition, call.input.count, None)
        # A message may have gone between the look at it and the look at its long text.
        if all(seen.text is not None for seen in look.found):
            break
    return tuple(
        MessageView(seen.record.message, None, seen.text)
        for seen in look.found
        if seen.text is not None
    )


async def _look(
    services: Services, partition: Partition, want: int, claim: Claim | None, decided: int = 0
) -> _Look:
    """Look for `want` messages that can be seen and that nobody has claimed; claim them.

    Arguments:
        claim: None = only look, at claimed ones too.
        decided: the time of an earlier decision. What had expired then has expired.
    """
    look = _Look(max(await services.store.now(), decided))
    found: list[tuple[Key, MessageRecord]] = []
    first, until = keys.message_range()
    first = services.disposable.of(ExpiredFronts).first(partition, first)
    reach = want
    if claim is not None:
        number = services.store.gateways.number
        reach += services.disposable.of(Distances).next(partition, number)
    size = min(reach + services.disposable.of(Claims).count(partition) + 1, _PAGE_RECORDS_MAX)
    while True:
        page = await services.store.read_range(partition, True, first, until, size)
        if _sift(look, page, reach, found, claim) or len(page) < size:
            break
        first, size = page[-1].name + b"\0", _PAGE_RECORDS_MAX
        await asyncio.sleep(0)
    _advance(look)
    if look.front is not None:
        services.disposable.of(ExpiredFronts).advance(partition, look.front)
    if claim is not None and len(found) > want:
        # Of those within reach the last ones, where the looks of other gateways come last.
        found = found[-want:]
        kept = {key.name for key, _ in found} | {one.key.name for one in look.expired}
        claim.release(besides=kept)
    look.found = await _with_texts(services, partition, found)
    return look


def _sift(
    look: _Look,
    page: Sequence[Item],
    want: int,
    found: list[tuple[Key, MessageRecord]],
    claim: Claim | None,
) -> bool:
    """Add what is wanted of a page to `found` or to the look's expired ones. Returns whether that
    is all that there is to be seen, or enough."""
    for item in page:
        # A message that was put with visibility 0 is visible from its own stamp on, which may be
        # a little ahead of the clock.
        look.committed = max(look.committed, item.version)
        look.now = max(look.now, item.version)
        # Where many take messages, most that a look comes upon are others'.
        if claim is not None and claim.is_taken(item.name):
            look.only_expired = False
            continue
        record = message_records.MESSAGE.decode(item.value)
        if record.message.visible > look.now:
            look.until = look.until or record.message.visible
            return True
        expired = messages.is_expired(record.message, look.now)
        look.only_expired &= expired
        if look.only_expired:
            look.ends_expired = record.message.visible, item.name + b"\0"
            _advance(look)
        if expired and (claim is None or len(look.expired) >= limits.EXPIRED_PER_COMMIT_MAX):
            continue
        if claim is not None:
            claim.take(item.name)
        key = Key(True, item.name)
        if expired:
            look.expired.append(_Seen(key, record, ""))
            continue
        found.append((key, record))
        if len(found) == want:
            return True
    return False


def _advance(look: _Look) -> None:
    """Move the front behind what has expired, if no commit that cannot be seen yet may have put
    something there."""
    visible, end = look.ends_expired
    if end and visible <= look.committed:
        look.front = end


async def _with_texts(
    services: Services, partition: Partition, found: list[tuple[Key, MessageRecord]]
) -> list[_Seen]:
    """The messages with their texts. A long text is read here, together with its message. An update
    in between has moved the message, and put the chunks of another text where these were."""
    places = [_places(key, record) for key, record in found]
    refs = [Ref(partition, key) for of_one in places for key in of_one]
    read = iter(await services.store.read(refs) if refs else ())
    return [
        _Seen(key, record, _text(record, [next(read) for _ in of_one]))
        for (key, record), of_one in zip(found, places, strict=True)
    ]


def _places(key: Key, record: MessageRecord) -> list[Key]:
    """Where a message with a long text lies: its own place and those of the chunks."""
    chunks = [keys.text(record.number, chunk) for chunk in range(record.chunks)]
    return [key, *chunks] if chunks else []


def _text(record: MessageRecord, places: Sequence[Record | None]) -> str | None:
    if not places:
        return record.text
    message, *chunks = places
    values = [message_records.TEXT.decode(chunk.value) for chunk in chunks if chunk is not None]
    # Of a queue that has been cleared since, a sweep may have taken either.
    if message is None or len(values) < len(chunks):
        return None
    try:
        return b"".join(values).decode()
    except UnicodeDecodeError as error:
        raise DamagedRecord("the text of a message is not UTF-8") from error
