"""A client of SMB beside the browser, which holds a file open: with a lease, with byte-range locks.

Lives here: the client. Must not live here: what the page must show (test_files.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import smbclient
from smbprotocol.create_contexts import (
    CreateContextName,
    LeaseState,
    SMB2CreateContextRequest,
    SMB2CreateRequestLeaseV2,
)
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    LockFlags,
    Open,
    RequestedOplockLevel,
    ShareAccess,
    SMB2LockElement,
)

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.ports import HOST

_READ_AND_HANDLE = LeaseState.SMB2_LEASE_READ_CACHING | LeaseState.SMB2_LEASE_HANDLE_CACHING
_READ_AND_WRITE = FilePipePrinterAccessMask.GENERIC_READ | FilePipePrinterAccessMask.GENERIC_WRITE


@dataclass(frozen=True, slots=True)
class SmbOpen:
    """A file that is open until it is closed here, or by force."""

    file: Open

    def lock(self, offset: int, length: int, *, is_exclusive: bool) -> None:
        """Lock bytes at once, or fail."""
        kind = LockFlags.SMB2_LOCKFLAG_SHARED_LOCK
        if is_exclusive:
            kind = LockFlags.SMB2_LOCKFLAG_EXCLUSIVE_LOCK
        element = SMB2LockElement()
        element["offset"], element["length"] = offset, length
        element["flags"] = kind | LockFlags.SMB2_LOCKFLAG_FAIL_IMMEDIATELY
        self.file.lock([element])

    def close(self) -> None:
        """Close it. It may have been closed by force."""
        self.file.close()


@contextmanager
def smb_session(port: int) -> Iterator[None]:
    """Provide a session of the development account."""
    smbclient.register_session(
        HOST,
        username=DEVELOPMENT_ACCOUNT_NAME,
        password=DEVELOPMENT_ACCOUNT_KEY,
        port=port,
        encrypt=True,
        auth_protocol="ntlm",
    )
    try:
        yield
    finally:
        smbclient.delete_session(HOST, port=port)


def open_with_lease(port: int, share: str, path: str, *, caches_writes: bool = False) -> SmbOpen:
    r"""Open a file (`folder\a.txt`) to read and write, with a lease on Read and Handle; others may
    read meanwhile.

    Arguments:
        caches_writes: whether the lease is on Write too. Nobody answers when it is broken.
    """
    tree = smbclient._pool.get_smb_tree(rf"\\{HOST}\{share}", port=port)[0]
    lease = SMB2CreateRequestLeaseV2()
    lease["lease_key"] = os.urandom(16)
    writes = LeaseState.SMB2_LEASE_WRITE_CACHING if caches_writes else 0
    lease["lease_state"] = _READ_AND_HANDLE | writes
    lease["parent_lease_key"], lease["epoch"] = bytes(16), bytes(2)
    context = SMB2CreateContextRequest()
    context["buffer_name"] = CreateContextName.SMB2_CREATE_REQUEST_LEASE_V2
    context["buffer_data"] = lease
    file = Open(tree, path)
    file.create(
        ImpersonationLevel.Impersonation,
        _READ_AND_WRITE,
        0,
        ShareAccess.FILE_SHARE_READ,
        CreateDisposition.FILE_OPEN,
        CreateOptions.FILE_NON_DIRECTORY_FILE,
        [context],
        oplock_level=RequestedOplockLevel.SMB2_OPLOCK_LEVEL_LEASE,
    )
    return SmbOpen(file)
