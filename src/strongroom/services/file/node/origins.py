"""Where an operation on a share comes from: a REST request, or a tree that SMB has connected.

Lives here: the share's record that an operation reads, its check, and what becomes of a commit when
the disk is full.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import msgspec

from strongroom.engines.base import Full, Ref
from strongroom.engines.endings import to_its_end
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.core import lease as leases
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Decision, Found, ReadOne
from strongroom.services.core.places import generation_of, place_in, place_ref
from strongroom.services.core.runner import Services
from strongroom.services.file.opens.open_handle import ShareAccess
from strongroom.services.file.snapshots.past_states import require_snapshot
from strongroom.store.core import keys
from strongroom.store.core.records import ShareRecord
from strongroom.values import Lease, Purpose

T = TypeVar("T")


class ShareOrigin(msgspec.Struct, frozen=True):
    """Where an operation on a share comes from."""

    @property
    def share_ref(self) -> Ref:
        raise NotImplementedError

    @property
    def generation(self) -> int:
        """Raises: StorageError ShareNotFound."""
        raise NotImplementedError

    @property
    def snapshot(self) -> int | None:
        """The stamp of the share's snapshot that is read; None = the share as it is now."""
        raise NotImplementedError

    @property
    def purpose(self) -> Purpose:
        """What its commits may use on a full disk."""
        raise NotImplementedError

    def at_serial_point(self) -> ShareOrigin:
        """This origin as a decision holds it."""
        return self

    def share_in(self, found: Found, share: ReadOne[ShareRecord]) -> ShareRecord:
        """Return the share, if it is the one that the operation is allowed to use."""
        raise NotImplementedError

    def guard(self, lease: Lease | None, stamp: int) -> None:
        """Check the lease of a directory or file.

        A file's lease changes by commits alone: it never expires, and breaks at once. So a view may
        judge it at the version of its record.
        """

    def storing(self) -> AbstractContextManager[None]:
        """Bytes are stored within it, or a commit is made; what becomes of an engine that is
        full."""
        return nullcontext()

    async def submit(self, services: Services, decision: Decision[T]) -> T:
        """The operation's entry in the table of opens, and its use of the share, end after the
        commit, even if it is cancelled meanwhile."""
        with self.storing():
            return await to_its_end(services.commit(decision))


class RequestOrigin(ShareOrigin, frozen=True):
    """A REST request. Its caller is authorized again if the share has changed meanwhile."""

    call: Call[Any]

    @property
    def share_ref(self) -> Ref:
        return place_ref(self.call)

    @property
    def generation(self) -> int:
        return generation_of(self.call)

    @property
    def snapshot(self) -> int | None:
        return self.call.target.snapshot

    @property
    def purpose(self) -> Purpose:
        return self.call.rule.purpose

    def at_serial_point(self) -> RequestOrigin:
        return RequestOrigin(self.call.with_pure_authorization())

    def share_in(self, found: Found, share: ReadOne[ShareRecord]) -> ShareRecord:
        if self.call.target.snapshot is None:
            return place_in(self.call, found, share)
        return require_snapshot(self.call, found.record(share))

    def guard(self, lease: Lease | None, stamp: int) -> None:
        leases.guard(lease, self.call.terms.lease_id, self.call.rule.lease, stamp)


class TreeOrigin(ShareOrigin, frozen=True):
    """A share that an SMB client is connected to. Its operations have no lease of REST."""

    access: ShareAccess

    @property
    def share_ref(self) -> Ref:
        return keys.share(self.access.account, self.access.share)

    @property
    def generation(self) -> int:
        return self.access.generation

    @property
    def snapshot(self) -> int | None:
        return self.access.snapshot

    @property
    def purpose(self) -> Purpose:
        return Purpose.GROWTH

    def share_in(self, found: Found, share: ReadOne[ShareRecord]) -> ShareRecord:
        return tree_share(self.access, found[share])

    @contextmanager
    def storing(self) -> Iterator[None]:
        try:
            yield
        except Full as full:
            raise StorageError(file_errors.DISK_FULL, str(full)) from None


def tree_share(access: ShareAccess, share: ShareRecord | None) -> ShareRecord:
    """Return the share that a tree is connected to, or whose snapshot a handle reads."""
    if share is None or share.generation != access.generation:
        raise StorageError(file_errors.SHARE_GONE)
    if access.snapshot is not None and access.snapshot not in share.snapshots:
        raise StorageError(file_errors.SNAPSHOT_GONE)
    return share
