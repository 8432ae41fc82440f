"""TREE_CONNECT and CREATE: a share, and an open of a file or directory in it.

Lives here: the steps of an open from its path to its entry and its commit. Must not live here: the
order of admission (semantics/file/opens.py), what is refused from the request alone (wanted.py),
creation (creating.py). Sources: [MS-SMB2] sections 3.3.5.7 and 3.3.5.9; [MS-FSA] section 2.1.5.1;
smb.md 2.3 and 2.4.

An open enters the table before it decides. Then it resolves the path again. If the path leads
elsewhere by now, or the file's facts differ from those that were admitted, the open leaves and
tries again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.semantics.file import accesses, names, opens
from strongroom.semantics.file import attributes as rules
from strongroom.semantics.file.accesses import Disposition
from strongroom.semantics.file.attributes import Attribute, Touch
from strongroom.semantics.file.deletion import FileFacts
from strongroom.semantics.file.opens import HandleRequest, OpenAdmitted, OpenRefused
from strongroom.services.core.decisions import Found
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import (
    creating,
    durable,
    operating,
    removing,
    snapshots,
    transfers,
    wanted,
)
from strongroom.services.file.handles.information import info_of
from strongroom.services.file.handles.model import (
    NO_CACHING_REQUESTED,
    AsyncRequest,
    CreateAction,
    Handle,
    OpenedHandle,
    RequestedOpen,
)
from strongroom.services.file.handles.operating import RequestWait
from strongroom.services.file.names import paths
from strongroom.services.file.node.access import ByPath, NodeState, look, share_of
from strongroom.services.file.node.changing import AdmittedAccess, change_bytes, resized
from strongroom.services.file.node.deciding import AdmittedNode, Applied, Edit
from strongroom.services.file.node.origins import TreeOrigin
from strongroom.services.file.opens.admission import facts_of
from strongroom.services.file.opens.changes import BYTES, Aspect, Watches, modified
from strongroom.services.file.opens.open_handle import HandleClient, HandleOwner, ShareAccess
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.opens.share_holds import ShareHolds, demand_share
from strongroom.services.tree.paths import PathChanged, Where
from strongroom.store.core import keys, records
from strongroom.store.file.file_records import FileRecord

_HANDLES_MAX: Final = 2000
"""Of one file or directory, as in Azure."""
_ALL_HANDLES_MAX: Final = 65_536
"""Of all files and clients together. Each takes some 3 KiB of memory."""
_ID_BITS: Final = 1 << 62


async def connect_share(services: Services, account: str, name: str) -> ShareAccess:
    """Return the share that a tree connects to, whatever the case of its name. ServerBusy (RETRY)
    when another gateway serves the share and cannot do without it."""
    share = names.share_of_tree(name)
    record = None
    if share is not None:
        (stored,) = await services.store.read([keys.share(account, share)])
        record = records.SHARE.of(stored)
    if share is None or record is None:
        raise StorageError(errors.SHARE_NOT_FOUND)
    await demand_share(services, record.generation)
    access = ShareAccess(account, share, record.generation)
    # A mounted client cannot go to another gateway, so the share stays here as long as it may.
    services.held.of(ShareHolds).keep_for(record.generation, access)
    return access


async def open_node(
    services: Services,
    access: ShareAccess,
    asked: RequestedOpen,
    owner: HandleOwner,
    request: AsyncRequest,
) -> OpenedHandle:
    """Open a file or directory, in the order of checks of smb.md 2.4. `request` gets an interim
    answer before the open waits for the break of a cache, and may be cancelled during the wait.
    SNAPSHOT_UNKNOWN when the share has no snapshot of the requested time."""
    held = services.held.of(Opens)
    repeated = durable.repeated(held, access, asked, owner)
    if repeated is not None:
        return await durable.repeated_answer(services, repeated)
    with held.durable.creating(durable.create_key(asked, owner)) as made:
        wanted.check(asked)
        if asked.at is not None:
            access = await snapshots.access_at(services, access, asked.at)
            # A snapshot never changes, so its files need no oplock and no lease.
            asked = msgspec.structs.replace(asked, cache=NO_CACHING_REQUESTED)
        now = await services.store.now()
        opening = _Opening(services, held, access, asked, owner, wait=RequestWait(request), now=now)
        while True:
            try:
                opened = await opening.attempt()
            except PathChanged:
                continue
            made(opened.handle)
            return opened


class _Opening:
    """One open, with its attempts until it has a handle."""

    def __init__(
        self,
        services: Services,
        held: Opens,
        access: ShareAccess,
        asked: RequestedOpen,
        owner: HandleOwner,
        *,
        wait: RequestWait,
        now: int,
    ) -> None:
        self._now = now
        self._services = services
        self._held = held
        self._watches = services.held.of(Watches)
        self._access = access
        self._origin = TreeOrigin(access)
        self._asked = asked
        self._owner = owner
        self._wait = wait
        self._has_waited = False
        self._id = self._fresh_id()

    def _fresh_id(self) -> int:
        """An unused id of 63 bits with the highest one set. List Handles can show it, and no
        operation's id collides with it."""
        while True:
            chosen = int.from_bytes(self._services.clock.random_bytes(8), "big")
            chosen = chosen & (_ID_BITS - 1) | _ID_BITS
            if chosen not in self._held.handles:
                return chosen

    async def attempt(self) -> OpenedHandle:
        """Raises: PathChanged when the open must be tried again."""
        if len(self._held.handles) >= _ALL_HANDLES_MAX:
            raise StorageError(file_errors.TOO_MANY_OPENS)
        access = self._access
        if access.snapshot is not None:
            return await self._open_in_snapshot(access.snapshot)
        where = await paths.walk(self._services, access.generation, self._asked.path)
        if where.is_root or where.entry is not None:
            return await self._open(where)
        if self._asked.disposition in (Disposition.OPEN, Disposition.OVERWRITE):
            await share_of(self._services, self._origin)
            raise StorageError(errors.RESOURCE_NOT_FOUND)
        return await self._create(where)

    async def _look(self, where: Where) -> NodeState:
        return await look(self._services, ByPath(self._origin, where))

    async def _wait_for_barriers(self, keys: Sequence[Hashable]) -> None:
        """Check that nothing is being created or renamed at these keys. If something is, wait for
        its end and raise PathChanged."""
        barrier = self._held.barriers.blocking(keys)
        if barrier is not None:
            await self._wait.until(barrier)
            raise PathChanged

    async def _open(self, where: Where) -> OpenedHandle:
        seen = await self._look(where)
        # From here to the entry nothing is awaited, unless it ends in PathChanged.
        await self._wait_for_barriers(barriers_of(where))
        mask = self._refuse(where, seen.record)
        facts = facts_of(seen.record, is_root=where.is_root)
        handle = self._handle(where, mask, seen.record)
        admitted = await self._admit(handle, self._asked.disposition, facts)
        with self._entered(handle, facts):
            again = await self._look(where)
            if facts_of(again.record, is_root=where.is_root) != facts:
                raise PathChanged
            record, action = again.record, CreateAction.OPENED
            if self._asked.disposition in opens.OVERWRITES:
                record, action = await self._overwrite(handle), CreateAction.OVERWRITTEN
                if self._asked.disposition is Disposition.SUPERSEDE:
                    action = CreateAction.SUPERSEDED
        return self._opened(handle, admitted, record, action)

    @contextmanager
    def _entered(self, handle: Handle, facts: FileFacts) -> Iterator[None]:
        """Keep the handle in the table, and remove it if the open fails. A forced close waits until
        the outcome is certain."""
        with handle.operating():
            try:
                yield
            except BaseException:
                self._held.remove_failed_open(handle.partition, handle.id, facts)
                raise

    async def _open_in_snapshot(self, snapshot: int) -> OpenedHandle:
        """The file never changes, so it is read only once."""
        asked = self._asked
        where = await paths.walk(self._services, self._access.generation, asked.path, snapshot)
        is_there = where.is_root or where.entry is not None
        wanted.check_changes_nothing(asked, is_there=is_there)
        if not is_there:
            raise StorageError(errors.RESOURCE_NOT_FOUND)
        seen = await self._look(where)
        mask = self._refuse(where, seen.record)
        # A lease of that time, or a copy that was pending then, has no effect now.
        facts = FileFacts(
            seen.record.is_directory,
            is_root=where.is_root,
            is_read_only=bool(seen.record.attributes & Attribute.READ_ONLY),
        )
        handle = self._handle(where, mask, seen.record)
        admitted = await self._admit(handle, Disposition.OPEN, facts)
        return self._opened(handle, admitted, seen.record, CreateAction.OPENED)

    def _refuse(self, where: Where, record: FileRecord) -> int:
        """Refuse an open that the present file does not permit. Returns the access that the open
        may be granted."""
        asked, file = self._asked, self._access.opens_of(where.id)
        table = self._held.table(file)
        self._held.check_not_pending(file)
        refused = wanted.refusal(asked, record, is_root=where.is_root)
        if refused is not None:
            raise StorageError(refused)
        if sum(one.is_handle for one in table.entries) >= _HANDLES_MAX:
            raise StorageError(file_errors.TOO_MANY_HANDLES)
        self._check_lease(where)
        return wanted.mask(asked, wanted.maximal_access(record, self._access.snapshot))

    def _check_lease(self, where: Where | None) -> None:
        """Raise LEASE_OF_OTHER_FILE if the lease key belongs to another file. A file that is being
        deleted does not count."""
        key = self._lease
        if key is None:
            return
        leased = self._held.leases.get(key)
        if leased is None or (where is not None and leased == where.partition):
            return
        state = self._held.table(leased).deletion
        if not state.is_pending and not state.on_close:
            raise StorageError(file_errors.LEASE_OF_OTHER_FILE)

    @property
    def _lease(self) -> tuple[bytes, bytes] | None:
        lease_key = self._asked.cache.lease_key
        return None if lease_key is None else (self._owner.client_guid, lease_key)

    def _handle(self, where: Where, mask: int, record: FileRecord) -> Handle:
        asked = self._asked
        return Handle(
            self._id,
            self._owner,
            self._access,
            where.id,
            where.parent,
            where.stored,
            is_directory=record.is_directory,
            mask=mask,
            share=asked.share,
            mode=asked.mode,
            key=self._id if self._lease is None else self._lease,
            kind=asked.cache.kind,
            opened=self._now,
            client=HandleClient(self._owner.peer, self._owner.session_id),
        )

    async def _admit(
        self, handle: Handle, disposition: Disposition, facts: FileFacts
    ) -> OpenAdmitted:
        """Enter the table. Raises: PathChanged after a wait."""
        asked, cache = self._asked, self._asked.cache
        request = HandleRequest(
            handle.id,
            handle.mask,
            asked.share,
            disposition,
            key=self._lease,
            kind=cache.kind,
            wanted=cache.wanted,
            epoch=cache.epoch,
            deletes_on_close=asked.deletes_on_close,
            has_waited=self._has_waited,
        )
        file = handle.partition
        outcome = opens.admit_handle(self._held.table(file), request, facts)
        if isinstance(outcome, OpenRefused):
            raise StorageError(outcome.row)
        self._held.put(file, outcome.table)
        if isinstance(outcome, OpenAdmitted):
            handle.kind = outcome.kind
            node = operating.access_of(handle)
            # Not a closure over self: it would keep the request and its connection as long as the
            # file is open.
            self._held.register_handle(handle, partial(removing.remove, self._services, node))
            self._held.notify(self._services, file, outcome.notices)
            return outcome
        self._held.notify(self._services, file, outcome.notices)
        self._has_waited = True
        await self._wait.until(self._held.node(file).change())
        # The file may have changed during the wait.
        raise PathChanged

    async def _overwrite(self, handle: Handle) -> FileRecord:
        """Empty the file, and give it the attributes of the request."""
        services = self._services
        edit = _Overwrite(rules.check_smb(self._asked.attributes, is_directory=False))
        with self._held.node(handle.partition).writing(0, transfers.FILE_BYTES_MAX):
            changed = modified(handle.path, BYTES | Aspect.ATTRIBUTES)
            report = partial(self._watches.report, self._access.generation, changed)
            entering = AdmittedAccess(operating.access_of(handle), report)
            _, record = await change_bytes(services, entering, resized(0, edit))
        return record

    async def _create(self, where: Where) -> OpenedHandle:
        """Create a file or directory under a free name, and open it before anybody else can."""
        await self._wait_for_barriers(barriers_of(where))
        parent = keys.file(where.generation, where.parent)
        self._held.check_not_pending(parent)
        self._check_lease(None)
        # Other opens wait until the new handle is entered, since its name is visible earlier.
        lift = self._held.barriers.block(where.refs[-1], above=_renamed_on(where))
        try:
            made, record = await creating.create(self._services, self._access, where, self._asked)
            mask = wanted.mask(self._asked, accesses.EVERYTHING)
            handle = self._handle(made, mask, record)
            # The creator of a read-only file may write to it by this handle (smb.md 2.4).
            facts = replace(facts_of(record), is_read_only=False)
            while self._held.table(handle.partition).entries:
                # These are REST operations. They do not wait for a creation, and end soon.
                await self._wait.until(self._held.node(handle.partition).change())
            admitted = await self._admit(handle, Disposition.OPEN, facts)
            with self._entered(handle, facts):
                again = await self._look(made)
        finally:
            lift()
        return self._opened(handle, admitted, again.record, CreateAction.CREATED)

    def _opened(
        self, handle: Handle, admitted: OpenAdmitted, record: FileRecord, action: CreateAction
    ) -> OpenedHandle:
        reserved = self._asked.allocation_bytes
        if reserved is not None and not record.is_directory and action is not CreateAction.OPENED:
            self._held.node(handle.partition).reserved_bytes = reserved
        handle.durable = durable.granted(
            self._asked.durable,
            self._owner,
            admitted.caching,
            action,
            is_file=not handle.is_directory,
        )
        return OpenedHandle(
            handle,
            action,
            info_of(self._held, handle, record),
            caching=admitted.caching,
            kind=handle.kind,
            is_breaking=admitted.is_breaking,
            epoch=admitted.epoch,
            maximal_access=wanted.maximal_access(record, self._access.snapshot),
            durable_timeout_ms=durable.timeout_of(handle),
        )


class _Overwrite(Edit, frozen=True):
    attributes: int

    def apply(self, node: AdmittedNode, found: Found, stamp: int) -> Applied:
        after = operating.after(node.record, Touch.OVERWRITE, stamp)
        attributes = int(self.attributes | Attribute.ARCHIVE)
        return msgspec.structs.replace(after, size_bytes=0, attributes=attributes), ()


def barriers_of(where: Where) -> list[Hashable]:
    """What an open of this path waits for: creations of the name, and renames of the named file or
    of a directory above it."""
    return [*_renamed_on(where), *where.refs[-1:]]


def _renamed_on(where: Where) -> list[Hashable]:
    """The files and directories on a path, as their renames block them."""
    return [(where.generation, one) for one in where.ids]
