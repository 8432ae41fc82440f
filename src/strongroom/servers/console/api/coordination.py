"""The documents of the coordination view: gates, locks and their like, as the read API tells them.

Lives here: frozen structs, each field with whose it is. Must not live here: how they are read
(console/), the other documents (documents.py). Times are RFC 3339 text. Those of holders are by
their own clocks. JSON values of users (payloads, members' data) are texts of at most 4096
characters, since JavaScript would change large numbers. Fences and ids are texts for that reason.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from strongroom.servers.console.marks import READABLE, SERVER

JSON_CHARS_MAX: Final = 4096
PAYLOAD_BYTES_MAX: Final = 32 * 1024
"""The longest body of an act: the payload of a gate."""

Kind = Literal["lock", "election", "semaphore", "rwlock"]


class ShownParticipant(msgspec.Struct, frozen=True):
    """Who it is, by its label, and since when."""

    who: Annotated[str, READABLE]
    since: Annotated[str, READABLE]


class ShownTerm(ShownParticipant, frozen=True):
    """A participant that must renew. `left_s` is how long its term lasts at most from now on."""

    ttl_s: Annotated[float, READABLE]
    left_s: Annotated[float, READABLE]


class ShownWaiter(ShownParticipant, frozen=True):
    """One participant that waits, in the order of the list.

    `since` is when the server saw it first, by the server's clock; "" if only the record names it.
    `is_queued`: its place is kept in the record, so that it is served in this order.
    """

    is_queued: Annotated[bool, READABLE]


class ShownHolder(ShownTerm, frozen=True):
    """One participant that holds something, or has arrived at a barrier.

    `writes` counts its renewals from 1. `role` is in the recipe's own words, like `hold`, `read` or
    `write`.
    """

    role: Annotated[str, READABLE]
    fence: Annotated[str, READABLE]
    writes: Annotated[int, READABLE]


class Awaited(msgspec.Struct, frozen=True):
    """What participants wait for; `waiting` has the first of them."""

    name: Annotated[str, READABLE]
    waiting: Annotated[tuple[ShownWaiter, ...], READABLE]
    waiting_count: Annotated[int, READABLE]


class ShownGate(Awaited, frozen=True):
    """A gate. `state` is for If-Match of `open` and `rearm`. `who`, `since`: its last change.

    `payload` is JSON text; "" while it is closed. A gate that somebody waits at is listed even if
    nobody has opened it yet.
    """

    generation: Annotated[int, READABLE]
    is_open: Annotated[bool, READABLE]
    payload: Annotated[str, READABLE]
    who: Annotated[str, READABLE]
    since: Annotated[str, READABLE]
    state: Annotated[str, READABLE]


class ShownHold(Awaited, frozen=True):
    """A lock, an election, a semaphore or a read-write lock.

    `fence` is the highest that was given. `limit` is the number of permits, 0 where there is no
    such number. `value` is JSON text that the holder published, or "". `end` says how the last hold
    ended. `state` is for If-Match of `break`; "" if nobody holds it.
    """

    kind: Annotated[Kind, READABLE]
    holders: Annotated[tuple[ShownHolder, ...], READABLE]
    fence: Annotated[str, READABLE]
    limit: Annotated[int, READABLE]
    value: Annotated[str, READABLE]
    end: Annotated[str, READABLE]
    state: Annotated[str, READABLE]


class ShownBarrier(msgspec.Struct, frozen=True):
    """A barrier: who has arrived, of how many. `parties` is 0 while nobody says it."""

    name: Annotated[str, READABLE]
    generation: Annotated[int, READABLE]
    parties: Annotated[int, READABLE]
    arrived: Annotated[tuple[ShownHolder, ...], READABLE]


class ShownMember(ShownTerm, frozen=True):
    """A member of a group. `data` is JSON text."""

    data: Annotated[str, READABLE]


class ShownGroup(msgspec.Struct, frozen=True):
    """A group of members, the first 100 of them. `member_count` counts the records of all."""

    name: Annotated[str, READABLE]
    members: Annotated[tuple[ShownMember, ...], READABLE]
    member_count: Annotated[int, READABLE]


class ShownIds(msgspec.Struct, frozen=True):
    """Unique ids: `next_id` is the first that nobody has reserved."""

    name: Annotated[str, READABLE]
    next_id: Annotated[str, READABLE]


class UnreadableRecord(msgspec.Struct, frozen=True):
    """A record that the toolkit cannot read, and why."""

    key: Annotated[str, READABLE]
    why: Annotated[str, READABLE]


class PlaceRecords(msgspec.Struct, frozen=True):
    """What one place has, a page of it, in the order of the keys.

    `next_after` is the `after` of the next page; "" on the last one.
    """

    gates: Annotated[tuple[ShownGate, ...], READABLE] = ()
    held: Annotated[tuple[ShownHold, ...], READABLE] = ()
    barriers: Annotated[tuple[ShownBarrier, ...], READABLE] = ()
    groups: Annotated[tuple[ShownGroup, ...], READABLE] = ()
    ids: Annotated[tuple[ShownIds, ...], READABLE] = ()
    unreadable: Annotated[tuple[UnreadableRecord, ...], READABLE] = ()
    next_after: Annotated[str, READABLE] = ""


class ContainerRecords(msgspec.Struct, frozen=True):
    """The records in one container of the account. `may_act`: this viewer may open and break."""

    container: Annotated[str, READABLE]
    may_act: Annotated[bool, READABLE]
    records: Annotated[PlaceRecords, READABLE]


class OtherStore(msgspec.Struct, frozen=True):
    """A store that the operator named; `url` has no credentials."""

    name: Annotated[str, SERVER]
    url: Annotated[str, SERVER]
    may_act: Annotated[bool, SERVER]


class Coordination(msgspec.Struct, frozen=True):
    """The coordination of an account. `change` differs whenever the rest does, but for countdowns.

    `has_more`: there are further containers; name one to see it. `stores` is empty unless the
    viewer is an operator.
    """

    change: Annotated[str, READABLE]
    containers: Annotated[tuple[ContainerRecords, ...], READABLE]
    has_more: Annotated[bool, READABLE]
    stores: Annotated[tuple[OtherStore, ...], SERVER] = ()


class StoreRecords(msgspec.Struct, frozen=True):
    change: Annotated[str, SERVER]
    store: Annotated[OtherStore, SERVER]
    records: Annotated[PlaceRecords, SERVER]


class GateAct(msgspec.Struct, frozen=True):
    """The answer to `open` and `rearm`: the gate as it is now."""

    generation: Annotated[int, READABLE]
    is_open: Annotated[bool, READABLE]
    state: Annotated[str, READABLE]


class BreakAct(msgspec.Struct, frozen=True):
    """The answer to `break`: the labels of those whose holds were ended; nobody held it if none."""

    broken: Annotated[tuple[str, ...], READABLE]


DOCUMENTS: Final = (Coordination, StoreRecords, GateAct, BreakAct)
"""The documents that are answers."""
