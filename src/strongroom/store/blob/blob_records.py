"""The records of blobs, and their codecs.

Lives here: heads and snapshots, uploads and their staged blocks, and what was retired. Must not
live here: bodies, whose stored forms the blob's record holds (bodies/), rules, keys.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.engines.base import Record
from strongroom.semantics.blob.immutability import Immutability
from strongroom.semantics.blob.pages import PageState
from strongroom.semantics.blob.tiers import Rehydration
from strongroom.semantics.core.copies import Copy
from strongroom.store.blob.bodies.empty import EMPTY
from strongroom.store.blob.bodies.kinds import AnyBody
from strongroom.store.core.records import Codec
from strongroom.values import BlobKind, ContentProperties, Lease, Metadata


class Deletion(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A blob or snapshot that was deleted and is kept: the stamp of that, and when it ends."""

    deleted: int
    until: int


class BlobRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A blob's head, one of its snapshots or previous versions. `committed` False: only blocks were
    staged so far.

    `snapshots` counts the base blob's snapshots (0 in a snapshot's own record), but not those that
    are deleted and kept. `tagged` is the token of the head's tags, 0 without tags: only entries of
    the tag index that end in it count. `sealed`: nothing can be appended any more. `deletion`: this
    one is deleted and kept. `shares`: a version or a kept snapshot may have the same body. `page`
    is what only a page blob has.

    `version` is the version's id; 0 = it is none. In the head's place, `versions` counts the
    previous ones, those that are deleted and kept included. `vacant`: there is no blob. Its place
    is held for its versions, and the record says what the last state was like, without a body.
    `immutability` protects this state alone, None = nothing does. `rehydration`: it is archived
    until that ends; readers settle it first (services/). `scope` is its encryption scope, "" = the
    account's own. `accessed` is when it was last written or read, to a day; 0 where that was not
    tracked.
    """

    kind: BlobKind
    committed: bool
    etag: int
    modified: int
    created: int
    size_bytes: int
    body: AnyBody
    properties: ContentProperties
    metadata: Metadata = ()
    lease: Lease | None = None
    copy: Copy | None = None
    snapshots: int = 0
    tier: str | None = None
    tier_changed: int = 0
    tags: Metadata = ()
    tagged: int = 0
    sealed: bool = False
    deletion: Deletion | None = None
    shares: bool = False
    page: PageState | None = None
    version: int = 0
    versions: int = 0
    vacant: bool = False
    immutability: Immutability | None = None
    rehydration: Rehydration | None = None
    scope: str = ""
    accessed: int = 0


class Upload(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The blocks being staged on a blob. `number` is the stamp of the upload's first block,
    `id_bytes` the length of all its ids, `touched` the stamp of the last block."""

    number: int
    id_bytes: int
    count: int
    touched: int


class StagedBlock(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One staged block."""

    size_bytes: int
    content: int


class Retired(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Bodies that one commit gave up and that others of the blob may still share."""

    bodies: tuple[AnyBody, ...]


BLOB: Final = Codec(BlobRecord)
UPLOAD: Final = Codec(Upload)
STAGED: Final = Codec(StagedBlock)
RETIRED: Final = Codec(Retired)


def visible(record: Record | None) -> BlobRecord | None:
    """The head, snapshot or version of a record, None where there is none. What was deleted and is
    kept is none, nor is a vacant place. Raises DamagedRecord."""
    found = BLOB.of(record)
    if found is None or found.deletion is not None or found.vacant:
        return None
    return found


def as_version(head: BlobRecord) -> BlobRecord:
    """A head as a previous version. One that is no version yet is called by its last change."""
    return msgspec.structs.replace(
        head,
        version=head.version or head.etag,
        versions=0,
        lease=None,
        snapshots=0,
        shares=False,
        tagged=0,
    )


def as_vacant(last: BlobRecord) -> BlobRecord:
    """The record for the head's place when only previous versions are left."""
    return msgspec.structs.replace(
        last,
        vacant=True,
        committed=True,
        body=EMPTY,
        lease=None,
        copy=None,
        snapshots=0,
        tags=(),
        tagged=0,
        deletion=None,
        shares=False,
    )
