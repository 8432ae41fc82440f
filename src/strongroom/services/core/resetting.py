"""The reset of a store: what the four services have in common.

Lives here: the right to reset, the decision that removes one place, and the decision that removes a
service's properties. Must not live here: which records a service has (the wings' `resetting.py`),
the walk over all of them (services/reset.py).

A reset never reaches a store by mistake: every commit of it carries the right, and checks it again
inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from strongroom.account_switches import Switches
from strongroom.engines.base import Commit, Key, Ref, Step, Write
from strongroom.services.core.decisions import Decision, Found, ReadOne
from strongroom.services.core.place_records import PlaceRecordKind, removed
from strongroom.services.core.soft_deleted_places import SoftDeleteKind
from strongroom.store.core import keys


class ResetRefused(Exception):
    """Nothing may be removed, or something may not; the text says what, and why."""


class ResetRight(msgspec.Struct, frozen=True):
    """The right to reset a store, which all commits of the reset carry.

    Attributes:
        is_marked: whether the store was created to be reset.
        is_durable: whether it outlives the process. What is protected in such a store stays.
    """

    is_marked: bool
    is_durable: bool

    def require(self) -> None:
        if not self.is_marked:
            raise ResetRefused("This store was not created with --allow-reset.")


class FoundPlace(NamedTuple):
    """The record of a container, queue, table or share, or of a soft-deleted one. `name` is
    account/name, as jobs name it."""

    name: str
    ref: Ref
    value: bytes

    @property
    def key(self) -> Key:
        return self.ref.key

    def kept(self, kind: PlaceRecordKind) -> Any | None:
        """The record of the soft-deleted place; None = it is not deleted."""
        if isinstance(kind, SoftDeleteKind) and keys.is_deleted_place(self.key.name):
            return kind.kept.decode(self.value)
        return None

    def record(self, kind: PlaceRecordKind) -> Any:
        """The place's record, whether it is soft-deleted or not."""
        kept = self.kept(kind)
        return kind.place.decode(self.value) if kept is None else kept.record


class PlaceRemoval(NamedTuple):
    """How a place is removed. `generation` is when it was created."""

    generation: int
    steps: tuple[Step, ...]


def removal_of(kind: PlaceRecordKind, place: FoundPlace, stamp: int, *more: Write) -> PlaceRemoval:
    """Of a place, or of a soft-deleted one, with all of its contents; `more` are further writes in
    its partition."""
    record, kept = place.record(kind), place.kept(kind)
    steps = removed(place.ref, kind.sweep(place.name, record), stamp, more=more)
    if isinstance(kind, SoftDeleteKind) and kept is not None:
        due = keys.job(kept.until, kept.deleted, kind.expiry_job)
        steps = (*steps, Step(due.partition, (Write(due.key, None),)))
    return PlaceRemoval(record.generation, steps)


RemovalOf = Callable[[FoundPlace, int], PlaceRemoval | None]
"""(place, stamp) -> how it is removed. None: the record is none of a place. It is pure."""
CheckProtection = Callable[[FoundPlace, Switches, int], None]
"""(place, the account's switches, the mark that the reset has set) raises ResetRefused for a place
that is protected, and ProtectedMeanwhile."""


class ProtectedMeanwhile(Exception):
    """Something in the place was protected since the reset looked at it."""


class RemovePlace(Decision[bool], frozen=True):
    """Remove one place, if it was created before the reset began. Returns whether it was removed.

    A place of the same name that was created since has another generation, and is left alone.

    Attributes:
        name: account/name.
        began: store time when the reset began.
        switches: the account's, which have the holds and policies of its containers.
        mark: what the reset has marked the place with; 0 = it needs no mark.
    """

    place: ReadOne[bytes]
    name: str
    began: int
    right: ResetRight
    switches: Switches
    removal_of: RemovalOf
    check: CheckProtection
    mark: int

    def decide(self, found: Found, stamp: int) -> Commit[bool]:
        self.right.require()
        value = found[self.place]
        if value is None:
            return Commit(False)
        place = FoundPlace(self.name, self.place.ref, value)
        removal = self.removal_of(place, stamp)
        if removal is None or removal.generation > self.began:
            return Commit(False)
        if self.right.is_durable:
            self.check(place, self.switches, self.mark)
        return Commit(True, removal.steps)


class RemoveProperties(Decision[bool], frozen=True):
    """Give a service of an account its first properties back. Returns whether it had others."""

    right: ResetRight
    properties: ReadOne[bytes]

    def decide(self, found: Found, stamp: int) -> Commit[bool]:
        self.right.require()
        if found[self.properties] is None:
            return Commit(False)
        removed = Write(self.properties.ref.key, None)
        return Commit(True, (Step(self.partition, (removed,)),))


def nothing_protected(place: FoundPlace, switches: Switches, mark: int) -> None:
    """The check of places that cannot be protected."""
