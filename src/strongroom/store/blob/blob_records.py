"""The records of blobs, and their codecs.

Lives here: heads and snapshots, uploads and their staged blocks, and retired bodies.
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
from strongroom.store.core.records import Codec, ShortCodec
from strongroom.values import (
    BlobKind,
    ContentProperties,
    Etag,
    ForeignEtag,
    Lease,
    Metadata,
)


class Deletion(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Of a blob or snapshot that is retained: its stamp, and when the retention ends."""

    deleted: int
    until: int


class BlobRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A blob's head, one of its snapshots or previous versions. `committed` False: only blocks were
    staged so far.

    `snapshots` counts the base blob's snapshots (0 in a snapshot's own record), except those that
    are deleted and retained. `tagged` is the token of the head's tags, 0 without tags: only entries
    of the tag index that end in it count. `sealed`: nothing can be appended any more. `deletion`:
    this state is deleted and retained. `shares`: a version or a retained snapshot may have the same
    body. `page` is state that only a page blob has.

    `version` is the version's id; 0 = this is no version. In the head's record, `versions` counts
    the previous ones, including those that are deleted and retained. `vacant`: the blob does not
    exist. The record holds the head's key for its versions, and keeps the last state without a
    body.

    `immutability` protects this state alone, None = unprotected. `rehydration`: the blob is
    archived until that ends; readers settle it first (services/). `scope` is its encryption scope,
    "" = the account's own. `accessed` is the time of the last write or read, to the day; 0 if that
    was not tracked. `foreign` is the ETag of an imported state. Answers and conditions take
    `shown_etag`; `etag` is the stamp, which orders states.
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
    foreign: ForeignEtag | None = None

    @property
    def shown_etag(self) -> Etag:
        return ForeignEtag.shown(self.foreign, self.etag)


class Upload(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The blocks staged on a blob, as one gateway counts them. The record of gateway 0 is there
    during the whole upload.

    Attributes:
        number: the stamp of the upload's first block.
        id_bytes: the length of all its ids.
        count: how many blocks the gateway has staged, less those of any gateway that it has
            replaced. The sum over all records is the number of staged blocks.
        touched: the stamp of the gateway's last block.
        others: in the record of gateway 0, the numbers of the other gateways that have one.
        share: the highest count of the gateway. The sum over all records is the limit of blocks.
            Without other gateways it has no meaning.
        gate_until, gate_by: in the record of gateway 0, the gate of a list that is to be committed.
            Until then no other gateway stages a block. 0 = there is no gate.
    """

    number: int
    id_bytes: int
    count: int
    touched: int
    others: tuple[int, ...] = ()
    share: int = 0
    gate_until: int = 0
    gate_by: int = 0


class StagedBlock(msgspec.Struct, frozen=True, array_like=True, gc=False):
    size_bytes: int
    content: int


class Retired(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Bodies that one commit gave up and that other states of the blob may still share."""

    bodies: tuple[AnyBody, ...]


BLOB: Final = Codec(BlobRecord)
UPLOAD: Final = ShortCodec(Upload, ((), 0, 0, 0))
STAGED: Final = Codec(StagedBlock)
RETIRED: Final = Codec(Retired)


def visible(record: Record | None) -> BlobRecord | None:
    """The head, snapshot or version in a record, if clients see it."""
    return shown(BLOB.of(record))


def shown(blob: BlobRecord | None) -> BlobRecord | None:
    """If clients see it. None for an absent one, a deleted and retained state, or a vacant head."""
    if blob is None or blob.deletion is not None or blob.vacant:
        return None
    return blob


def as_version(head: BlobRecord) -> BlobRecord:
    """A head without a version id gets the stamp of its last change."""
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
    """The record for the head's key when only previous versions are left."""
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
