"""The records, and their versioned codecs.

Lives here: the stored structs and their encoding: one version byte, then MessagePack. An unknown
version is an error, never a guess.
"""

from __future__ import annotations

import enum
from typing import Final, Generic, TypeVar, cast

import msgspec

from strongroom.engines.base import Record
from strongroom.semantics.core.lines import Line
from strongroom.service_properties import ServiceProperties
from strongroom.values import (
    AccessPolicy,
    Etag,
    ForeignEtag,
    Lease,
    Metadata,
    PublicAccess,
)

R = TypeVar("R")


class DamagedRecord(Exception):
    """A record that this version cannot have written: it is damaged, or a newer version wrote
    it."""


class ContainerRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A container. Its blobs are in the keyspace of `generation`. Times and `etag` are stamps.
    `deleting`: the mark of a deletion that checks whether the container is empty; 0 = there is
    none. `scope` is the default encryption scope, "" = the account's own; `denies_scopes`: writes
    with another scope are refused. `foreign` is the ETag of an imported container; answers take
    `shown_etag`."""

    generation: int
    etag: int
    modified: int
    metadata: Metadata = ()
    public_access: PublicAccess = PublicAccess.NONE
    policies: tuple[AccessPolicy, ...] = ()
    lease: Lease | None = None
    deleting: int = 0
    scope: str = ""
    denies_scopes: bool = False
    foreign: ForeignEtag | None = None

    @property
    def shown_etag(self) -> Etag:
        return ForeignEtag.shown(self.foreign, self.etag)


class DeletedContainer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A container that was deleted and can be restored before `until`. `deleted` is the stamp of
    the deletion. The container's record no longer has a lease."""

    record: ContainerRecord
    deleted: int
    until: int


class QueueRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A queue. Its messages are in the keyspace of `generation`, in the partition of `epoch`:
    clearing the queue begins a new one. `secret` signs its pop receipts."""

    generation: int
    epoch: int
    secret: bytes
    metadata: Metadata = ()
    policies: tuple[AccessPolicy, ...] = ()


class TableRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A table, under its name as it was created. Its entities are in the keyspace of
    `generation`."""

    generation: int
    name: str
    policies: tuple[AccessPolicy, ...] = ()


class ShareRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A share of files. Its directories and files are stored under `generation`. Times and `etag`
    are stamps.

    `fold_version` is the version of the table by which its names are compared
    (semantics/file/upcase.py). `snapshots` are the stamps of its snapshots, oldest first; `lost` is
    that of the newest deleted one. The record of a snapshot has neither.
    """

    generation: int
    etag: int
    modified: int
    quota_gib: int
    tier: str
    tier_changed: int
    fold_version: int
    metadata: Metadata = ()
    policies: tuple[AccessPolicy, ...] = ()
    lease: Lease | None = None
    snapshots: tuple[int, ...] = ()
    lost: int = 0


class DeletedShare(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A share that was deleted; see DeletedContainer."""

    record: ShareRecord
    deleted: int
    until: int


class JobKind(enum.IntEnum):
    SWEEP_CONTAINER = 1
    SWEEP_BLOB = 2
    COPY = 3
    EXPIRE_UPLOAD = 4
    SWEEP_TABLE = 5
    SWEEP_MESSAGES = 6
    EXPIRE_MESSAGES = 7
    EXPIRE_CONTAINER = 8
    SWEEP_TAGS = 9
    EXPIRE_BLOB = 10
    SWEEP_FILE = 11
    SWEEP_SHARE = 12
    EXPIRE_SHARE = 14
    SWEEP_SNAPSHOT = 15
    COPY_FILE = 16


class CopyOrder(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The source of a pending copy, and the parts of the request that are needed after its
    response.

    The copy reads the blob `blob` (or its snapshot) in `container` of this server while that has
    `generation`. Or it reads `url` elsewhere, with the signature in the URL. `etag` is the ETag
    that the source must still have when it is opened again (None: it had none). `metadata` None =
    the source's. `destination` is the account/container that must still have the job's generation.
    `version` is the id of the version that is read; None = the blob or its snapshot. `service` is
    the source's service: a file's share is its `container`, and its path `blob`; `trailing_dots`
    says whether trailing dots in its names count. The `destination` of a copy to a file is
    account/share/path.
    """

    account: str = ""
    container: str = ""
    generation: int = 0
    blob: str = ""
    snapshot: int | None = None
    url: str = ""
    etag: str | None = None
    metadata: Metadata | None = None
    destination: str = ""
    version: int | None = None
    service: str = "blob"
    trailing_dots: bool = False


class Job(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Work to be done after the response.

    Blob jobs name their blob. `token` must still match the records, else the job is void: it is a
    copy's id, or an upload's number. For a deleted container or share it is the name,
    account/container, that must no longer have this generation. Jobs on messages name their
    `epoch`. Jobs on files have their id, as text, in `blob`. `tags` are the tags of a blob, each
    set with its token, whose entries may be stale. `versions` has an owner for each set: a
    version's id, or 0 for the blob itself.
    """

    kind: JobKind
    generation: int
    blob: str = ""
    token: str = ""
    order: CopyOrder | None = None
    epoch: int = 0
    tags: tuple[tuple[int, Metadata], ...] = ()
    versions: tuple[int, ...] = ()


class Codec(Generic[R]):
    """Encodes and decodes the records of one type. `version` is the first byte of each record;
    `decode` refuses other versions."""

    def __init__(self, kind: type[R], version: int = 1) -> None:
        self._kind = kind
        self._version = bytes((version,))
        self._encoder = msgspec.msgpack.Encoder()
        self._decode = msgspec.msgpack.Decoder(kind).decode

    def encode(self, value: R) -> bytes:
        return self._version + self._encoder.encode(value)

    def wrote(self, data: bytes) -> bool:
        return data[:1] == self._version

    def decode(self, data: bytes) -> R:
        if data[:1] != self._version:
            raise DamagedRecord(f"record version {data[:1]!r} is not {self._version!r}")
        try:
            return self._decode(data[1:])
        except msgspec.MsgspecError as error:
            raise DamagedRecord(f"not a {self._kind}: {error}") from error

    def of(self, record: Record | None) -> R | None:
        return None if record is None else self.decode(record.value)


class ShortCodec(Codec[R]):
    """A codec that leaves out the last fields which have their defaults. So records without a newer
    field stay as they were before it.

    Arguments:
        defaults: of the fields that may be left out, in their order.
    """

    def __init__(self, kind: type[R], defaults: tuple[object, ...]) -> None:
        super().__init__(kind)
        self._defaults = tuple(reversed(defaults))

    def encode(self, value: R) -> bytes:
        fields = msgspec.structs.astuple(cast("msgspec.Struct", value))
        for default in self._defaults:
            if fields[-1] != default:
                break
            fields = fields[:-1]
        return self._version + self._encoder.encode(fields)


CONTAINER: Final = Codec(ContainerRecord)
DELETED_CONTAINER: Final = Codec(DeletedContainer)
QUEUE: Final = Codec(QueueRecord)
TABLE: Final = Codec(TableRecord)
SHARE: Final = Codec(ShareRecord)
DELETED_SHARE: Final = Codec(DeletedShare)
JOB: Final = Codec(Job)
PROPERTIES: Final = Codec(ServiceProperties)
LINE: Final = Codec(Line)
