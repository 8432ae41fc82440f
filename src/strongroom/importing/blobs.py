"""Imports blobs and their snapshots.

Lives here: one commit for each state of a blob, and a further one for each part of a large page
blob. Must not live here: how bytes are read (bodies.py), how a blob's head is kept consistent with
its jobs and tags (services/blob/decisions/changes.py).

A state gets the commit's stamp as its `etag`, which orders states here. The ETag that it had is a
field of its own. Dates, and the time by which a snapshot is called, are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from strongroom.engines.base import Key, Record, Ref, Step
from strongroom.importing import bodies, conversions
from strongroom.importing.conversions import NotConvertible
from strongroom.importing.documents import BlobDocument
from strongroom.importing.folder import ExtentFiles
from strongroom.importing.places import require_absent
from strongroom.importing.session import ImportedPlace, ImportSession
from strongroom.semantics.blob.pages import PageState
from strongroom.semantics.core import names
from strongroom.services.blob.decisions.changes import BlobChange
from strongroom.store.blob import blob_records
from strongroom.store.blob.blob_records import BlobRecord
from strongroom.store.blob.bodies.body import Body, BodyChange, NewBody
from strongroom.store.blob.bodies.empty import EMPTY
from strongroom.store.blob.bodies.pages import NewPages, with_leaves
from strongroom.store.core import keys
from strongroom.store.core.extents import Part
from strongroom.store.core.keys import Past
from strongroom.values import BlobKind, ForeignEtag, Lease

BLOB: Final = msgspec.json.Decoder(BlobDocument)
_NO_BASE: Final = "its blob was not imported"
_Taken = Callable[[BodyChange, Body], Body]
"""taken(change, body before) returns the body of the state that a commit writes."""


class BlobImport:
    """The import of the blobs of a folder, whose `files` have the bodies."""

    def __init__(self, session: ImportSession, files: ExtentFiles) -> None:
        self._session = session
        self._files = files

    async def base(self, place: ImportedPlace, document: BlobDocument) -> None:
        """Import a blob without its snapshots. Raises NotConvertible, ExtentRefused,
        StorageError."""
        names.check_blob(document.name, document.container_name)
        now = await self._session.store.now()
        lease, reason = _lease(document, now)
        record = _record(document, lease)
        await self._write(_Head(place.generation, document.name, record), document)
        self._session.report.counts["blobs"] += 1
        self._report_lost(document, "lease", reason)

    async def snapshot(self, place: ImportedPlace, document: BlobDocument) -> None:
        """Import a snapshot of a blob that was imported before. Raises NotConvertible,
        ExtentRefused, StorageError."""
        names.check_blob(document.name, document.container_name)
        past = Past(conversions.time(document.snapshot, "time of the snapshot"))
        if past.ticks >= await self._session.store.now():
            raise NotConvertible("the time of the snapshot is in the future")
        record = _record(document, None)
        await self._write(_Snapshot(place.generation, document.name, record, past), document)
        self._session.report.counts["snapshots"] += 1

    def _report_lost(self, document: BlobDocument, kind: str, reason: str | None) -> None:
        if reason is not None:
            self._session.report.lose(kind, blob_place(document), reason)

    async def _write(self, target: _Target, document: BlobDocument) -> None:
        """Write a state, in one commit or more."""
        if target.record.kind is BlobKind.PAGE:
            await self._write_pages(target, document)
        else:
            store = self._session.store
            new = await bodies.new_body(
                store.contents, store.turns, self._files, document, target.record.kind
            )
            await self._commit_body(target, new)
        self._session.report.counts["bytes"] += document.properties.content_length
        if target.record.foreign is None:
            self._report_lost(document, "etag", conversions.etag_loss(document.properties.etag))

    async def _commit_body(self, target: _Target, new: NewBody) -> None:
        try:
            await self._commit(target, lambda change, before: new.take(change), is_first=True)
        except BaseException:
            new.discard(self._session.store.contents)
            raise

    async def _write_pages(self, target: _Target, document: BlobDocument) -> None:
        contents, is_first = self._session.store.contents, True
        for leaves in bodies.page_batches(document, self._files):
            parts = await bodies.new_pages(contents, self._files, leaves)
            new = NewPages(document.properties.content_length, parts)
            try:
                await self._commit(target, _pages_taken(new, parts, is_first), is_first)
            except BaseException:
                new.discard(contents)
                raise
            is_first = False

    async def _commit(self, target: _Target, taken: _Taken, is_first: bool) -> None:
        def steps(found: Sequence[Record | None], stamp: int) -> tuple[Step, ...]:
            return target.steps(found, stamp, taken, is_first)

        await self._session.commit(target.partition, target.reads(), steps)


def _pages_taken(new: NewPages, parts: Sequence[Part], is_first: bool) -> _Taken:
    if is_first:
        return lambda change, before: new.take(change)
    return lambda change, before: with_leaves(before, parts, change)


class _Target:
    """A state of a blob that is written. `record` has neither stamps nor a body yet."""

    def __init__(self, generation: int, name: str, record: BlobRecord) -> None:
        self.record = record
        self.partition = keys.blob(generation, name)
        self._generation = generation
        self._name = name

    def reads(self) -> list[Ref]:
        """Return what `steps` needs to see."""
        raise NotImplementedError

    def steps(
        self, found: Sequence[Record | None], stamp: int, taken: _Taken, is_first: bool
    ) -> tuple[Step, ...]:
        """Return the steps of a commit that writes the state, or a further part of its body."""
        raise NotImplementedError

    def _change(self, stamp: int, head: BlobRecord | None) -> BlobChange:
        return BlobChange(self.partition, self._generation, self._name, stamp, head, None)

    def _written(self, before: BlobRecord | None, body: Body, stamp: int) -> BlobRecord:
        if before is not None:
            return msgspec.structs.replace(before, body=body)
        record = self.record
        foreign = None if record.foreign is None else ForeignEtag(stamp, record.foreign.text)
        return msgspec.structs.replace(record, etag=stamp, foreign=foreign, body=body)


class _Head(_Target):
    """The blob itself."""

    def reads(self) -> list[Ref]:
        return [Ref(self.partition, keys.HEAD_KEY)]

    def steps(
        self, found: Sequence[Record | None], stamp: int, taken: _Taken, is_first: bool
    ) -> tuple[Step, ...]:
        (record,) = found
        if is_first:
            require_absent(record)
        head = blob_records.BLOB.of(record)
        change = self._change(stamp, head)
        body = taken(change, EMPTY if head is None else head.body)
        change.put_head(self._written(head, body, stamp))
        return change.steps()


class _Snapshot(_Target):
    """A snapshot. Its blob's head counts it."""

    def __init__(self, generation: int, name: str, record: BlobRecord, past: Past) -> None:
        super().__init__(generation, name, record)
        self._past = past

    def reads(self) -> list[Ref]:
        wanted = keys.HEAD_KEY, keys.past(self._past)
        return [Ref(self.partition, key) for key in wanted]

    def steps(
        self, found: Sequence[Record | None], stamp: int, taken: _Taken, is_first: bool
    ) -> tuple[Step, ...]:
        head_record, before_record = found
        head, before = blob_records.BLOB.of(head_record), blob_records.BLOB.of(before_record)
        if head is None:
            raise NotConvertible(_NO_BASE)
        if head.kind is not self.record.kind:
            raise NotConvertible("it has another type than its blob")
        if is_first:
            require_absent(before_record)
        change = self._change(stamp, head)
        body = taken(_InSnapshot(change, self._past), EMPTY if before is None else before.body)
        snapshot = self._written(before, body, stamp)
        change.put(keys.past(self._past), blob_records.BLOB.encode(snapshot))
        if before is None:
            change.put_head(msgspec.structs.replace(head, snapshots=head.snapshots + 1))
        return change.steps()


class _InSnapshot:
    """A commit in which a body is taken by a snapshot, not by the head. See BodyChange."""

    def __init__(self, change: BlobChange, past: Past) -> None:
        self._change = change
        self._past = past
        self.stamp = change.stamp

    def put(self, key: Key, value: bytes | None) -> None:
        """Write a record; the inline bytes of the head are those of the snapshot here."""
        self._change.put(keys.inline(*self._past) if key == keys.inline(0) else key, value)

    def adopt(self, content: int) -> None:
        self._change.adopt(content)

    def drop(self, content: int) -> None:
        self._change.drop(content)

    def retire(self, body: Body) -> None:
        self._change.retire(body)


def blob_place(document: BlobDocument) -> str:
    name = f"{document.account_name}/{document.container_name}/{document.name}"
    return f"{name}?snapshot={document.snapshot}" if document.snapshot else name


def _lease(document: BlobDocument, now: int) -> tuple[Lease | None, str | None]:
    """Return the lease, and the reason why one is lost."""
    try:
        return conversions.lease(document, document.properties.lease_state, now), None
    except NotConvertible as error:
        return None, str(error)


def _record(document: BlobDocument, lease: Lease | None) -> BlobRecord:
    """Return the record of a state, without stamps and body. Raises NotConvertible."""
    properties, kind = document.properties, conversions.kind(document)
    modified = conversions.time(properties.last_modified, "time of the last change")
    created = properties.creation_time
    if properties.content_length < 0:
        raise NotConvertible("its length is negative")
    number = properties.blob_sequence_number or 0
    tier, tier_changed = conversions.tier(properties, kind)
    etag = conversions.etag(properties.etag)
    return BlobRecord(
        kind=kind,
        committed=True,
        etag=0,
        modified=modified,
        created=modified if created is None else conversions.time(created, "time of creation"),
        size_bytes=properties.content_length,
        body=EMPTY,
        properties=conversions.content_properties(properties),
        metadata=conversions.metadata(document.metadata),
        lease=lease,
        copy=conversions.copy(properties),
        tier=tier,
        tier_changed=tier_changed,
        tags=conversions.blob_tags(document.blob_tags),
        sealed=kind is BlobKind.APPEND and bool(properties.is_sealed),
        page=PageState(conversions.sequence_number(number)) if kind is BlobKind.PAGE else None,
        foreign=None if etag is None else ForeignEtag(0, etag),
    )
