"""The list of all kinds of bodies, and the hidden records that belong to them.

Lives here: code that needs the list of kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from strongroom.engines.base import Key
from strongroom.slices import run_to_completion
from strongroom.store.blob.bodies.appended import Appended, NewAppended, appended_contents
from strongroom.store.blob.bodies.blocks import StoredBlockList
from strongroom.store.blob.bodies.body import HEAD, Body, NewBody
from strongroom.store.blob.bodies.empty import Empty
from strongroom.store.blob.bodies.in_record import InRecord
from strongroom.store.blob.bodies.inline import Inline
from strongroom.store.blob.bodies.listed import Listed
from strongroom.store.blob.bodies.pages import NewPages, Pages
from strongroom.store.blob.bodies.received import NO_BYTES
from strongroom.store.blob.bodies.stored import Stored
from strongroom.store.core import keys
from strongroom.store.core.extents import contents_of
from strongroom.store.core.keys import Past
from strongroom.store.core.records import DamagedRecord
from strongroom.values import BlobKind

# Nearly every request reads a head; the others read a few snapshots.
_NUMBERS_CACHED_MAX: Final = 64

if TYPE_CHECKING:
    # All other modules know a body by its interface only.
    AnyBody = Body
else:
    AnyBody = Empty | InRecord | Inline | Stored | Listed | Appended | Pages


class HiddenKind(NamedTuple):
    """One kind of hidden records that belong to bodies.

    `orphan_text`: doctor's text for one that belongs to no body, with {} for its number.
    `contents`: contents(name, value) -> the contents that a record names. Raises DamagedRecord.
    """

    orphan_text: str
    contents: Callable[[bytes, bytes], Collection[int]]


def _listed_contents(name: bytes, value: bytes) -> Collection[int]:
    return run_to_completion(StoredBlockList.decode(value).contents())


MAP_KINDS: Final = frozenset(keys.MAP_KINDS)
_HIDDEN: Final = {
    keys.INLINE: HiddenKind("inline bytes at {} belong to nothing", lambda name, value: ()),
    keys.BLOCK_LIST: HiddenKind("block list {} belongs to nothing", _listed_contents),
    keys.APPENDED: HiddenKind("a block appended to body {} belongs to nothing", appended_contents),
    **{kind: HiddenKind("map {} belongs to nothing", contents_of) for kind in MAP_KINDS},
}
"""The kinds of hidden records, by the first byte of their keys."""


def empty_body(kind: BlobKind) -> NewBody:
    """The body of a new blob of this type that has no bytes yet."""
    if kind is BlobKind.PAGE:
        return NewPages(0)
    return NewAppended() if kind is BlobKind.APPEND else NO_BYTES


def hidden_kind(name: bytes) -> HiddenKind:
    """Raises: DamagedRecord when no body has such keys."""
    kind = _HIDDEN.get(name[:1])
    if kind is None:
        raise DamagedRecord(f"no record has the key {name!r}")
    return kind


@lru_cache(_NUMBERS_CACHED_MAX)
def read_with(past: Past | None) -> tuple[Key, ...]:
    """The keys that are read together with the record of a head (None), a snapshot or a version,
    for any kind of body (BodyPlace.beside)."""
    return (keys.inline(*(past or HEAD)),)
