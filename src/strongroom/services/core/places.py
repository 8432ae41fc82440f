"""The places of an account: containers, queues, tables, shares, by one table.

Lives here: where a place's record is, what of it the path of a request needs, and what is answered
when there is none. The check at the serial point that it still is the place that was authorized
lives here too. Must not live here: what else a place's record holds, HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from strongroom import blob_errors, file_errors, queue_errors, table_errors
from strongroom.auth.request import Service
from strongroom.engines.base import Record, Ref
from strongroom.errors import ErrorCode, StorageError
from strongroom.semantics.core import names
from strongroom.services.core.calls import Call, Place
from strongroom.store.core import keys, records

# Each request looks at one, which as a rule has not changed.
_REMEMBERED: Final = 64


@dataclass(frozen=True, slots=True)
class PlaceKind:
    """One kind of place.

    Attributes:
        ref: (account, name) -> its record.
        read: that record -> what the path of a request needs of it.
        missing: answered where there is none.
        is_name: whether there can be one of this name at all.
    """

    ref: Callable[[str, str], Ref]
    read: Callable[[Record], Place]
    missing: ErrorCode
    is_name: Callable[[str], bool]


@lru_cache(_REMEMBERED)
def _container(record: Record) -> Place:
    found = records.CONTAINER.decode(record.value)
    return Place(
        found.generation, record.version, found.policies, found.public_access, record=found
    )


@lru_cache(_REMEMBERED)
def _queue(record: Record) -> Place:
    found = records.QUEUE.decode(record.value)
    return Place(found.generation, record.version, found.policies, record=found)


@lru_cache(_REMEMBERED)
def _table(record: Record) -> Place:
    found = records.TABLE.decode(record.value)
    return Place(found.generation, record.version, found.policies)


@lru_cache(_REMEMBERED)
def _share(record: Record) -> Place:
    found = records.SHARE.decode(record.value)
    return Place(found.generation, record.version, found.policies, record=found)


PLACES: Final = {
    Service.BLOB: PlaceKind(
        keys.container, _container, blob_errors.CONTAINER_NOT_FOUND, names.is_container_name
    ),
    Service.QUEUE: PlaceKind(keys.queue, _queue, queue_errors.QUEUE_NOT_FOUND, names.is_queue_name),
    Service.TABLE: PlaceKind(keys.table, _table, table_errors.TABLE_NOT_FOUND, names.is_table_name),
    Service.FILE: PlaceKind(keys.share, _share, file_errors.SHARE_NOT_FOUND, names.is_queue_name),
}


def place_ref(call: Call[Any]) -> Ref:
    """The record of the container, queue or table that the request names."""
    return PLACES[call.target.service].ref(call.target.account, call.target.container)


def generation_of(call: Call[Any]) -> int:
    """The generation of the place that the request was authorized for.

    Raises: StorageError ContainerNotFound, QueueNotFound or TableNotFound when there was none.
    """
    if call.place is None:
        raise StorageError(PLACES[call.target.service].missing)
    return call.place.generation


def check_place(call: Call[Any], found: Record | None) -> None:
    """The place still is the one that the request came to.

    When it has changed, or the request waits, the request is authorized again. Its token may have
    expired meanwhile, or its key may be gone.

    Arguments:
        call: in a decision, one `as_of_now`.
        found: its record, as the decision sees it.

    Raises: StorageError ContainerNotFound, QueueNotFound or TableNotFound (deleted, or another
        generation); what authorizing raises.
    """
    place = call.place
    unchanged = place is not None and found is not None and found.version == place.version
    if unchanged and not call.terms.wait_s:
        return
    kind = PLACES[call.target.service]
    if place is None or found is None:
        raise StorageError(kind.missing)
    there = kind.read(found)
    if there.generation != place.generation:
        raise StorageError(kind.missing)
    judge = call.judge or call.caller.authorize()
    judge(there)
