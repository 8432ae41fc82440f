"""A page of a store's records, read by the toolkit's own readers.

Lives here: which records there are, in what order, and how many of them one page has. Must not live
here: how a record is decoded or judged (the toolkit's recipes), documents (record_views.py), other
threads. Nothing here writes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from strongroom.console import record_views
from strongroom.console.held_waits import HeldWait
from strongroom.coordination import Client
from strongroom.coordination.errors import BadName, CorruptRecord
from strongroom.coordination.recipes.gate_core import read_steps
from strongroom.coordination.recipes.ids.id_ranges import next_id_steps
from strongroom.coordination.recipes.inspect_members import groups_of, show_members_steps
from strongroom.coordination.recipes.slots.inspect_slots import (
    show_barrier_steps,
    show_slots_steps,
)
from strongroom.coordination.schema.names import key_of, name_of
from strongroom.servers.console.api.coordination import (
    Kind,
    PlaceRecords,
    ShownBarrier,
    ShownGate,
    ShownGroup,
    ShownHold,
    ShownIds,
    UnreadableRecord,
)

PAGE_MAX: Final = 500
MEMBERS_SHOWN: Final = 100
_LIST_TIMEOUT_S: Final = 2.0
KINDS: Final = ("barrier", "election", "gate", "ids", "lock", "members", "rwlock", "semaphore")

Waits = Mapping[str, tuple[HeldWait, ...]]
"""Who waits, by the key of the record."""


class Thing(NamedTuple):
    """Something by name, and the keys of its records. `key` orders all things of a place."""

    key: str
    kind: str
    name: str
    keys: tuple[str, ...]


class PageOf(NamedTuple):
    """Which page is wanted: so many things after this key.

    `until_s`: by the client's clock, the time after which no further record is read.
    """

    after: str = ""
    limit: int = PAGE_MAX
    until_s: float = float("inf")


@dataclass(slots=True)
class _Found:
    gates: list[ShownGate] = field(default_factory=list)
    held: list[ShownHold] = field(default_factory=list)
    barriers: list[ShownBarrier] = field(default_factory=list)
    groups: list[ShownGroup] = field(default_factory=list)
    ids: list[ShownIds] = field(default_factory=list)
    unreadable: list[UnreadableRecord] = field(default_factory=list)

    def page(self, next_after: str) -> PlaceRecords:
        return PlaceRecords(
            gates=tuple(self.gates),
            held=tuple(self.held),
            barriers=tuple(self.barriers),
            groups=tuple(self.groups),
            ids=tuple(self.ids),
            unreadable=tuple(self.unreadable),
            next_after=next_after,
        )


def read_page(client: Client, page: PageOf, waits: Waits) -> PlaceRecords:
    """Return a page of the records of a client's store.

    Arguments:
        waits: who waits at which key; a gate that has no record is listed if somebody waits at it.

    Raises: StoreUnavailable, StoreRefused.
    """
    found, last, count = _Found(), "", 0
    for thing in _things(client, page.after, waits):
        if thing.key <= page.after:
            continue
        if count >= page.limit or client.context.clock.monotonic_s() > page.until_s:
            return found.page(last)
        _add(client, thing, waits.get(thing.key, ()), found)
        count += max(1, min(len(thing.keys), MEMBERS_SHOWN))
        last = thing.key
    return found.page("")


def _things(client: Client, after: str, waits: Waits) -> Iterator[Thing]:
    """Yield what a store has after a key, in the order of the keys. Raises: as `read_page`."""
    for kind in KINDS:
        if after > f"{kind}0":  # the character after the slash: no key of this kind is left
            continue
        keys = client.store.list_keys(f"{kind}/", _LIST_TIMEOUT_S)
        if kind == "members":
            things = [
                Thing(key_of(kind, group), kind, group, tuple(own))
                for group, own in groups_of(keys).items()
            ]
        else:
            awaited = {key for key in waits if kind == "gate" and key.startswith("gate/")}
            things = [
                Thing(key, kind, name, (key,))
                for key in {*keys, *awaited}
                if (name := _name_of(key)) is not None
            ]
        yield from sorted(things)


def _name_of(key: str) -> str | None:
    with contextlib.suppress(BadName):
        return name_of(key)
    return None  # nothing of the toolkit's


def _add(client: Client, thing: Thing, waits: tuple[HeldWait, ...], found: _Found) -> None:
    try:
        _ADDERS[thing.kind](client, thing, waits, found)
    except CorruptRecord as error:
        why = record_views.shown(str(error))
        found.unreadable.append(UnreadableRecord(thing.key, why))


def _add_gate(client: Client, thing: Thing, waits: tuple[HeldWait, ...], found: _Found) -> None:
    view, version = client.driver.run(read_steps(thing.key))
    if version is not None or waits:
        found.gates.append(record_views.gate_of(thing.name, view, waits))


def _adder_of_lock(kind: Kind) -> _Adder:
    def add(client: Client, thing: Thing, waits: tuple[HeldWait, ...], found: _Found) -> None:
        view = client.show(thing.name, kind)
        if view is not None:
            found.held.append(record_views.lock_of(kind, view, waits))

    return add


def _adder_of_slots(kind: Kind) -> _Adder:
    def add(client: Client, thing: Thing, waits: tuple[HeldWait, ...], found: _Found) -> None:
        view = client.driver.run(show_slots_steps(client.context, kind, thing.name))
        if view is not None:
            found.held.append(record_views.slots_of(kind, view, waits))

    return add


def _add_barrier(client: Client, thing: Thing, _: tuple[HeldWait, ...], found: _Found) -> None:
    view = client.driver.run(show_barrier_steps(client.context, thing.name))
    if view is not None:
        found.barriers.append(record_views.barrier_of(view))


def _add_group(client: Client, thing: Thing, _: tuple[HeldWait, ...], found: _Found) -> None:
    keys = thing.keys[:MEMBERS_SHOWN]
    members = client.driver.run(show_members_steps(client.context, keys))
    if members:
        shown = tuple(record_views.member_of(one) for one in members)
        found.groups.append(ShownGroup(thing.name, shown, len(thing.keys)))


def _add_ids(client: Client, thing: Thing, _: tuple[HeldWait, ...], found: _Found) -> None:
    number = client.driver.run(next_id_steps(thing.name))
    if number is not None:
        found.ids.append(ShownIds(thing.name, str(number)))


_Adder = Callable[[Client, Thing, tuple[HeldWait, ...], _Found], None]
_ADDERS: Final[dict[str, _Adder]] = {
    "barrier": _add_barrier,
    "election": _adder_of_lock("election"),
    "gate": _add_gate,
    "ids": _add_ids,
    "lock": _adder_of_lock("lock"),
    "members": _add_group,
    "rwlock": _adder_of_slots("rwlock"),
    "semaphore": _adder_of_slots("semaphore"),
}
