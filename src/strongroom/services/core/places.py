"""The places of an account (containers, queues, tables, shares), in one table.

Lives here: the key of a place's record, the facts that a request needs from it, and the error when
there is none. Also here: the check at the serial point that the place is still the one that was
authorized.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

import msgspec

from strongroom.auth.request import Service
from strongroom.engines.base import Record, Ref
from strongroom.errors import core as errors
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.semantics.core import names
from strongroom.services.core.calls import Call, Place
from strongroom.services.core.decisions import Found, ReadOne
from strongroom.store.core import keys, records

R = TypeVar("R")

# Each request reads one of these records, which seldom change.
_REMEMBERED: Final = 64


class PlaceKind(msgspec.Struct, frozen=True):
    """One kind of place.

    Attributes:
        ref: takes (account, name) and returns the key of its record.
        read: takes the record and returns the facts that a request needs.
    """

    ref: Callable[[str, str], Ref]
    read: Callable[[Record], Place]
    missing: ErrorCode
    is_name: Callable[[str], bool]


@lru_cache(_REMEMBERED)
def _container(record: Record) -> Place:
    container = records.CONTAINER.decode(record.value)
    return Place(
        container.generation,
        record.version,
        container.policies,
        container.public_access,
        record=container,
        scope=container.scope,
    )


@lru_cache(_REMEMBERED)
def _queue(record: Record) -> Place:
    queue = records.QUEUE.decode(record.value)
    return Place(queue.generation, record.version, queue.policies, record=queue)


@lru_cache(_REMEMBERED)
def _table(record: Record) -> Place:
    table = records.TABLE.decode(record.value)
    return Place(table.generation, record.version, table.policies)


@lru_cache(_REMEMBERED)
def _share(record: Record) -> Place:
    share = records.SHARE.decode(record.value)
    return Place(share.generation, record.version, share.policies, record=share)


PLACES: Final = {
    Service.BLOB: PlaceKind(
        keys.container, _container, errors.CONTAINER_NOT_FOUND, names.is_container_name
    ),
    Service.QUEUE: PlaceKind(keys.queue, _queue, errors.QUEUE_NOT_FOUND, names.is_queue_name),
    Service.TABLE: PlaceKind(keys.table, _table, errors.TABLE_NOT_FOUND, names.is_table_name),
    Service.FILE: PlaceKind(keys.share, _share, errors.SHARE_NOT_FOUND, names.is_queue_name),
}


def place_ref(call: Call[Any]) -> Ref:
    return PLACES[call.target.service].ref(call.target.account, call.target.container)


def generation_of(call: Call[Any]) -> int:
    """Of the place that the request was authorized for. Refused as `missing` if there was none."""
    if call.place is None:
        raise StorageError(PLACES[call.target.service].missing)
    return call.place.generation


def check_place(call: Call[Any], found: Record | None) -> Record:
    """Return the record of the place, if it is still the one that the request was authorized for.

    When it has changed, or the request waits, the request is authorized again. Its token may have
    expired meanwhile, or its key may be gone.

    Arguments:
        call: in a decision, one that `with_pure_authorization` has returned.
        found: the place's record, as the decision sees it.
    """
    place = call.place
    if place is None or found is None:
        raise StorageError(PLACES[call.target.service].missing)
    if found.version == place.version and not call.terms.wait_s:
        return found
    kind = PLACES[call.target.service]
    there = kind.read(found)
    if there.generation != place.generation:
        raise StorageError(kind.missing)
    reauthorize = call.reauthorize or call.caller.authorize()
    reauthorize(there)
    return found


def place_in(call: Call[Any], found: Found, place: ReadOne[R]) -> R:
    """Return the place that the request was authorized for; as check_place. `place` is the read of
    `place_ref`."""
    record = check_place(call, found.record(place))
    authorized = call.place
    if authorized is None or authorized.record is None or authorized.version != record.version:
        return place.codec.decode(record.value)
    # It was decoded when the request was authorized.
    return cast("R", authorized.record)
