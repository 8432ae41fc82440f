"""One share in two protocols: what REST and SMB clients refuse each other, step by step.

    python examples/smb_meets_rest.py

Needs the packages smbprotocol and azure-storage-file-share. Starts its own server. Prints each
step, the status code that REST met, and what SMB was answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import smbclient
from azure.storage.fileshare import ShareClient, ShareFileClient
from smbprotocol.exceptions import SMBOSError
from steps import Unexpected, step

from strongroom.testing.ports import HOST, free_port
from strongroom.testing.server import Server

SHARE = "documents"
SHARING_VIOLATION = 0xC0000043


class Mounted:
    """The share as an SMB client sees it.

    Arguments:
        port: of SMB; another one than 445 has to be named with each call.
    """

    def __init__(self, port: int) -> None:
        self._port = port

    def open(self, name: str, mode: str, share: str) -> Any:
        """Open a file. `share`: what others may do meanwhile, of `r`, `w` and `d`."""
        path = rf"\\{HOST}\{SHARE}\{name}"
        return smbclient.open_file(path, mode=mode, share_access=share, port=self._port)

    def remove(self, name: str) -> None:
        """Delete a file. It goes when nobody has it open any more."""
        smbclient.remove(rf"\\{HOST}\{SHARE}\{name}", port=self._port)


def smb(what: str, call: Callable[[], Any], expected: int = 0) -> Any:
    """Do one step over SMB, print what it met, and insist on the expected NTSTATUS."""
    try:
        result, status = call(), 0
    except SMBOSError as error:
        result, status = None, error.ntstatus
    if status != expected:
        raise Unexpected(f"{what}: {status:#x}, not {expected:#x}")
    print(f"  SMB: {what:<61} {'SHARING_VIOLATION' if status else 'ok'}")
    return result


def share_modes(mounted: Mounted, file: ShareFileClient) -> None:
    """What an open of SMB does not share is refused to REST for as long as it lasts."""
    print("An SMB open that shares nothing")
    opened = smb("open to read, and share nothing", lambda: mounted.open("report", "rb", ""))
    step("REST: read", 409, lambda: file.download_file().readall())
    smb("close", opened.close)
    step("REST: read", 200, lambda: file.download_file().readall())
    print("An SMB open that shares reading")
    opened = smb("open to write, and share reading", lambda: mounted.open("report", "r+b", "r"))
    step("REST: read", 200, lambda: file.download_file().readall())
    step("REST: write", 409, lambda: file.upload_range(b"REST", 0, 4))
    step("REST: delete", 409, file.delete_file)
    handles = step("REST: list who has it open", 200, lambda: list(file.list_handles()))
    print(f"  {len(handles)} handle, of {handles[0].path}")
    step("REST: close it by force", 200, lambda: file.close_handle(handles[0]))
    step("REST: write", 201, lambda: file.upload_range(b"REST", 0, 4))


def lease(mounted: Mounted, file: ShareFileClient) -> None:
    """A lease of REST lets SMB read, and nothing else."""
    print("A lease of REST")
    held = step("REST: acquire a lease", 201, file.acquire_lease)
    smb("open to write", lambda: mounted.open("report", "r+b", "rwd"), SHARING_VIOLATION)
    opened = smb("open to read", lambda: mounted.open("report", "rb", "rwd"))
    print(f"  it reads {opened.read(4).decode()}")
    smb("close", opened.close)
    step("REST: release the lease", 200, held.release)
    smb("open to write", lambda: mounted.open("report", "r+b", "rwd")).close()


def deletion(mounted: Mounted, file: ShareFileClient) -> None:
    """What SMB deletes stays until its last open is closed, and REST is told so."""
    print("A file that is deleted while it is open")
    opened = smb("open to read", lambda: mounted.open("report", "rb", "rwd"))
    smb("delete it", lambda: mounted.remove("report"))
    step("REST: read: it is marked for deletion", 409, file.get_file_properties)
    smb("close", opened.close)
    step("REST: read: it is gone", 404, file.get_file_properties)


@contextmanager
def served() -> Iterator[tuple[Mounted, ShareClient]]:
    """A server of our own, and the share in both protocols."""
    port = free_port()
    with Server.start(flags=("--smb", "--smb-port", str(port))) as server:
        given = dict(part.split("=", 1) for part in server.connection_string.split(";") if part)
        smbclient.register_session(
            HOST,
            username=given["AccountName"],
            password=given["AccountKey"],
            port=port,
            encrypt=True,
            auth_protocol="ntlm",
        )
        share = ShareClient.from_connection_string(server.connection_string, SHARE)
        try:
            yield Mounted(port), share
        finally:
            smbclient.delete_session(HOST, port=port)


def main() -> None:
    """Walk through all of it."""
    with served() as (mounted, share):
        step("REST: create a share", 201, share.create_share)
        file = share.get_file_client("report")
        step("REST: upload a file", 201, lambda: file.upload_file(b"first draft"))
        share_modes(mounted, file)
        lease(mounted, file)
        deletion(mounted, file)


if __name__ == "__main__":
    main()
