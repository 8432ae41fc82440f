"""Get Messages, Peek Messages: the messages that are visible now, the longest visible first.

Lives here: the search for messages, which reads a range without deciding, and the decision, which
takes those that are still there. Sources: "Get Messages", "Peek Messages".

A message that was found is guarded by its own key, since taking, updating or deleting moves it. So
one of several retrievals gets it, and the others search again. The claims of this gateway make
conflicts between its own retrievals rare. A gateway that loses messages to another one starts its
searches after the oldest ones for a while.

An answer without messages needs a search that found none and left none to other claims. Messages
that others take become visible again if those requests fail. So the number of searches has no
limit. A search whose messages are all gone lost them to commits of others, so some request makes
progress each time.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from strongroom import limits
from strongroom.engines.base import Commit, Item, Key, Partition, Record, Ref, StorageEngine
from strongroom.errors import core as errors
from strongroom.errors import queue as queue_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core.lines import Line
from strongroom.semantics.queue import messages, pop_receipts
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import (
    Decision,
    Found,
    ReadAll,
    ReadOne,
    Reads,
)
from strongroom.services.core.places import place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.core.turns import Turn
from strongroom.services.core.waiters import FirstWaiter
from strongroom.services.core.waiting import MustWait
from strongroom.services.queue import ledgers
from strongroom.services.queue.claims import Claim, Claims, SearchOffsets
from strongroom.services.queue.expired_front import ExpiredFronts
from strongroom.services.queue.ledgers import StoredLedger
from strongroom.services.queue.message_changes import MessagesChange
from strongroom.services.queue.messages import MessageView
from strongroom.services.queue.queues import queue_of
from strongroom.store.core import keys, records
from strongroom.store.core.records import DamagedRecord, QueueRecord
from strongroom.store.queue import message_records
from strongroom.store.queue.message_records import Ledger, MessageRecord

Messages = tuple[MessageView, ...]

# After this many searches without a message, a retrieval also tries for messages that others have
# claimed.
_SEARCHES_BEFORE_COMPETING: Final = 15
# How many times Peek Messages reads again messages that changed while they were read.
_PEEK_TRIES: Final = 16
_PAGE_RECORDS_MAX: Final = 120


class GetMessages(msgspec.Struct, frozen=True):
    count: int = 1
    visibility_s: int = limits.DEFAULT_VISIBILITY_S


class PeekMessages(msgspec.Struct, frozen=True):
    count: int = 1


class Retrieving(NamedTuple):
    """What this gateway remembers of its retrievals. To lose it costs only time. `fronts` are where
    the messages that have not expired begin."""

    claims: Claims
    offsets: SearchOffsets
    fronts: ExpiredFronts


def retrieving(services: Services) -> Retrieving:
    state = services.disposable
    return Retrieving(state.of(Claims), state.of(SearchOffsets), state.of(ExpiredFronts))


class _FoundMessage(NamedTuple):
    """A message that was found, with its whole text; None = the text was gone already."""

    key: Key
    record: MessageRecord
    text: str | None


@dataclass(slots=True)
class _SearchResult:
    """The result of a search.

    Attributes:
        now: store time of the search.
        found: messages to take.
        expired: expired messages, to be removed in passing.
        until: when more messages become visible by time alone; None = never.
        front: all messages before it have expired, and none will appear there.
        only_expired: only expired messages were seen so far.
        expired_prefix_end: when the last message of that expired prefix became visible, and the
            prefix's end.
        committed: the greatest stamp that was seen.
        has_plenty: there is a message for every waiter at all gateways, or a whole page of them.
    """

    now: int
    found: list[_FoundMessage] = field(default_factory=list)
    expired: list[_FoundMessage] = field(default_factory=list)
    until: int | None = None
    front: bytes | None = None
    only_expired: bool = True
    expired_prefix_end: tuple[int, bytes] = (0, b"")
    committed: int = 0
    has_plenty: bool = False


async def get_messages(services: Services, call: Call[GetMessages]) -> Messages:
    """Take up to `count` messages, and hide them for `visibility_s`.

    With `x-strongroom-wait` the answer comes when there is a message or the time is over. The
    waiters at all gateways are served in order of arrival.
    """
    if call.target.secondary:
        message = "Write operations are not allowed. A retrieval changes the message."
        raise StorageError(errors.INSUFFICIENT_ACCOUNT_PERMISSIONS, message)
    memory = retrieving(services)
    if not call.terms.wait_s:
        return await _get(services, memory, call)
    no_message_error = StorageError(queue_errors.MESSAGE_NOT_FOUND)

    async def attempt(first: FirstWaiter | None) -> Messages:
        return await _get(services, memory, call, no_message_error, first)

    try:
        return await services.waiting.in_turn(
            place_ref(call), call.terms.wait_s, no_message_error, attempt, call.client
        )
    except StorageError as error:
        if error is not no_message_error:
            raise
        return ()


async def _get(
    services: Services,
    memory: Retrieving,
    call: Call[GetMessages],
    no_message_error: StorageError | None = None,
    first: FirstWaiter | None = None,
) -> Messages:
    """Take messages that are visible now. If there are none, a MustWait with `no_message_error` is
    raised; None = return none. `first` None = no other gateway's waiters are considered."""
    decided = 0
    turn: Turn | None = None
    for searches in itertools.count():
        # An attempt of a waiting request comes here again after a while.
        again = searches > 0 or no_message_error is not None
        if first is None:
            queue, version = await queue_of(services, call, again)
        else:
            queue, version, turn = await _queue_in_turn(services, call, first)
        partition = keys.message_partition(queue.generation, queue.epoch)
        # Read before the search: a message that is put after the search has changed a ledger since.
        counted: Sequence[StoredLedger] = ()
        if no_message_error is not None:
            counted = await ledgers.read_all(services, partition)
        with memory.claims.hold(partition, searches >= _SEARCHES_BEFORE_COMPETING) as claim:
            search = await _search(
                services.store,
                memory,
                partition,
                call.input.count,
                claim,
                decided,
                waiters=0 if turn is None else turn.waiters,
            )
            taken: Messages = ()
            if search.found or search.expired:
                if first is not None and turn is not None and search.has_plenty:
                    turn = first.turn_with_plenty(turn)
                taken, decided = await _take(services, call, queue, search, turn)
            elif claim.has_skipped:
                await claim.wait_for_release()
        if taken:
            return taken
        if search.found:
            memory.offsets.note_lost_messages(partition)
        # A request whose client has disconnected must not go on searching.
        if call.client.is_disconnected or not (search.found or claim.has_skipped):
            break
    if no_message_error is None:
        return ()
    watched = [(place_ref(call), version), *((one.ref, one.version) for one in counted)]
    raise MustWait(no_message_error, watched, search.now, search.until)


async def _queue_in_turn(
    services: Services, call: Call[GetMessages], first: FirstWaiter
) -> tuple[QueueRecord, int | None, Turn]:
    """As `queue_of`, for the gateway's first waiter. Raises: NotInTurn."""
    reads = Reads()
    place = reads.add(place_ref(call), records.QUEUE)
    first.read(reads)
    found = await services.read(reads)
    queue = place_in(call, found, place)
    return queue, found.version(place), await first.turn(found)


async def _take(
    services: Services,
    call: Call[GetMessages],
    queue: QueueRecord,
    search: _SearchResult,
    turn: Turn | None,
) -> tuple[Messages, int]:
    """Take the messages that are still where they were found, and remove the expired ones. Return
    those that were taken, and the store time of the commit."""
    partition, reads = keys.message_partition(queue.generation, queue.epoch), Reads()
    seen = (*search.found, *search.expired)
    place = reads.add(place_ref(call), records.QUEUE)
    ledger: ReadOne[Ledger] | None = None
    if search.expired:
        # A moved message does not change the count, so the ledger is not needed without expired
        # messages.
        ledger = ledgers.add_own(services, reads, partition)
    of_seen = reads.add_all([Ref(partition, one.key) for one in seen], message_records.MESSAGE)
    return await ledgers.commit(
        services,
        _Take(
            partition,
            reads.refs,
            call.rule.purpose,
            call.with_pure_authorization(),
            queue,
            place=place,
            ledger=ledger,
            seen=seen,
            of_seen=of_seen,
            turn=turn,
            line=None if turn is None else reads.add(turn.line, records.LINE),
        ),
    )


class _Take(Decision[tuple[Messages, int]], frozen=True):
    """Take those of `seen` that are still there, and remove those that have expired.

    Attributes:
        ledger: None = no expired message was seen.
        of_seen: the records of `seen`, in the same order.
        turn: None = it does not wait in line.
        line: of all gateways' waiters; None = it does not wait in line.
    """

    call: Call[GetMessages]
    queue: QueueRecord
    place: ReadOne[QueueRecord]
    ledger: ReadOne[Ledger] | None
    seen: tuple[_FoundMessage, ...]
    of_seen: ReadAll[MessageRecord]
    turn: Turn | None
    line: ReadOne[Line] | None

    def decide(self, found: Found, stamp: int) -> Commit[tuple[Messages, int]]:
        """Nothing is taken when none of the messages is left."""
        queue = self.queue
        if place_in(self.call, found, self.place).epoch != queue.epoch:
            return Commit(((), stamp))
        if self.ledger is None:
            change = MessagesChange(queue.generation, queue.epoch, stamp)
        else:
            ledger, key = ledgers.own(found, self.ledger), self.ledger.ref.key
            change = MessagesChange(queue.generation, queue.epoch, stamp, ledger, key)
        seen = zip(self.seen, found.records(self.of_seen), strict=True)
        there = [one for one, record in seen if record is not None]
        taken = [
            _taken(change, one, queue.secret, self.call.input.visibility_s, stamp)
            for one in there
            if not messages.is_expired(one.record.message, stamp)
        ]
        if self.ledger is not None:
            for one in there:
                if messages.is_expired(one.record.message, stamp):
                    change.remove(one.key, one.record)
        steps = change.steps()
        if taken and self.turn is not None and self.line is not None:
            self.turn.check(found, self.line, stamp)
            steps = (*steps, *self.turn.passed_on(found, self.line, stamp))
        return Commit((tuple(taken), stamp), steps)


def _taken(
    change: MessagesChange, seen: _FoundMessage, secret: bytes, visibility_s: int, stamp: int
) -> MessageView:
    if seen.text is None:
        raise DamagedRecord("a message is there, and its text is not")
    message = messages.get(seen.record.message, visibility_s, stamp)
    place = change.move(seen.key, seen.record, message)
    return MessageView(message, pop_receipts.seal(secret, place), seen.text)


async def peek_messages(services: Services, call: Call[PeekMessages]) -> Messages:
    """The messages that Get Messages would take, without any change."""
    memory = retrieving(services)
    for searches in range(_PEEK_TRIES):
        queue, _ = await queue_of(services, call, again=searches > 0)
        partition = keys.message_partition(queue.generation, queue.epoch)
        search = await _search(services.store, memory, partition, call.input.count, None)
        # A message may have been removed between the read of it and the read of its long text.
        if all(seen.text is not None for seen in search.found):
            break
    return tuple(
        MessageView(seen.record.message, None, seen.text)
        for seen in search.found
        if seen.text is not None
    )


async def _search(
    store: StorageEngine,
    memory: Retrieving,
    partition: Partition,
    want: int,
    claim: Claim | None,
    decided: int = 0,
    *,
    waiters: int = 0,
) -> _SearchResult:
    """Search for `want` messages that are visible and unclaimed, and claim them.

    Arguments:
        claim: None = only search, and include claimed messages.
        decided: the time of an earlier decision, a lower bound of the time of this search.
        waiters: how many requests wait at all gateways; 0 = their number does not matter.
    """
    search = _SearchResult(max(await store.now(), decided))
    found: list[tuple[Key, MessageRecord]] = []
    first, until = keys.message_range()
    first = memory.fronts.first(partition, first)
    reach = want
    if claim is not None:
        reach += memory.offsets.next(partition, store.gateways.number)
    size = min(reach + memory.claims.count(partition) + waiters + 1, _PAGE_RECORDS_MAX)
    while True:
        page = await store.read_range(partition, True, first, until, size)
        if waiters and len(page) == size:
            last = message_records.MESSAGE.decode(page[-1].value).message
            search.has_plenty = last.visible <= search.now
        if _collect_page(search, page, reach, found, claim) or len(page) < size:
            break
        first, size = page[-1].name + b"\0", _PAGE_RECORDS_MAX
        await asyncio.sleep(0)
    _advance(search)
    if search.front is not None:
        memory.fronts.advance(partition, search.front)
    if claim is not None and len(found) > want:
        # Keep the last messages within reach: searches of other gateways reach these last.
        found = found[-want:]
        kept = {key.name for key, _ in found} | {one.key.name for one in search.expired}
        claim.release(besides=kept)
    search.found = await _with_texts(store, partition, found)
    return search


def _collect_page(
    search: _SearchResult,
    page: Sequence[Item],
    want: int,
    found: list[tuple[Key, MessageRecord]],
    claim: Claim | None,
) -> bool:
    """Add the wanted messages of a page to `found` or to the expired ones of `search`.

    Returns: whether the search has enough, or has seen all visible messages.
    """
    for item in page:
        # A message that was put with visibility 0 is visible from its own stamp on, which may be a
        # little ahead of the clock.
        search.committed = max(search.committed, item.version)
        search.now = max(search.now, item.version)
        # With many concurrent retrievals, most messages of a page are claimed by others.
        if claim is not None and claim.is_taken(item.name):
            search.only_expired = False
            continue
        record = message_records.MESSAGE.decode(item.value)
        if record.message.visible > search.now:
            search.until = search.until or record.message.visible
            return True
        expired = messages.is_expired(record.message, search.now)
        search.only_expired &= expired
        if search.only_expired:
            search.expired_prefix_end = record.message.visible, item.name + b"\0"
            _advance(search)
        if expired and (claim is None or len(search.expired) >= limits.EXPIRED_PER_COMMIT_MAX):
            continue
        if claim is not None:
            claim.take(item.name)
        key = Key(True, item.name)
        if expired:
            search.expired.append(_FoundMessage(key, record, ""))
            continue
        found.append((key, record))
        if len(found) == want:
            return True
    return False


def _advance(search: _SearchResult) -> None:
    """Move the front past the expired messages, unless a commit that is not visible yet may put
    a message there."""
    visible, end = search.expired_prefix_end
    if end and visible <= search.committed:
        search.front = end


async def _with_texts(
    store: StorageEngine, partition: Partition, found: list[tuple[Key, MessageRecord]]
) -> list[_FoundMessage]:
    """Return the messages with their texts.

    A long text is read here, together with its message. An update in between has moved the message,
    and has replaced the chunks at these keys.
    """
    places = [_places(key, record) for key, record in found]
    refs = [Ref(partition, key) for of_one in places for key in of_one]
    read = iter(await store.read(refs) if refs else ())
    return [
        _FoundMessage(key, record, _text(record, [next(read) for _ in of_one]))
        for (key, record), of_one in zip(found, places, strict=True)
    ]


def _places(key: Key, record: MessageRecord) -> list[Key]:
    """The keys of a message with a long text: its own and those of the chunks."""
    chunks = [keys.text(record.number, chunk) for chunk in range(record.chunks)]
    return [key, *chunks] if chunks else []


def _text(record: MessageRecord, places: Sequence[Record | None]) -> str | None:
    if not places:
        return record.text
    message, *chunks = places
    values = [message_records.TEXT.decode(chunk.value) for chunk in chunks if chunk is not None]
    # In a queue that was cleared meanwhile, a sweep may have removed either.
    if message is None or len(values) < len(chunks):
        return None
    try:
        return b"".join(values).decode()
    except UnicodeDecodeError as error:
        raise DamagedRecord("the text of a message is not UTF-8") from error
