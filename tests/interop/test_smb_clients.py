"""Clients of SMB and REST on one share: Samba's smbclient, smbprotocol and Azure's own SDK."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import smbclient
from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import ShareClient
from smbprotocol.create_contexts import (
    CreateContextName,
    SMB2CreateContextRequest,
    SMB2CreateTimewarpToken,
)
from smbprotocol.exceptions import SMBOSError
from smbprotocol.ioctl import CtlCode, IOCTLFlags, SMB2IOCTLRequest, SMB2IOCTLResponse
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    Open,
    ShareAccess,
)

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.errors.file import STATUS_SHARING_VIOLATION
from strongroom.testing.ports import HOST, free_port
from strongroom.testing.server import Server
from tests.interop.tools import require_tool

SHARE = "documents"
PATIENCE_S = 100
MIB = 1 << 20
LARGE = bytes(range(256)) * 20_000


@dataclass(frozen=True, slots=True)
class Mounted:
    """A share that both protocols serve."""

    port: int
    rest: ShareClient
    folder: Path

    def samba(
        self,
        *commands: str,
        options: tuple[str, ...] = (),
        key: str = "",
        patience_s: float = PATIENCE_S,
    ) -> str:
        """Return the output of smbclient for these commands; fail if a command fails."""
        secret = key or DEVELOPMENT_ACCOUNT_KEY
        login = self.folder / "login"
        login.write_text(f"username={DEVELOPMENT_ACCOUNT_NAME}\npassword={secret}\n")
        ran = subprocess.run(
            [
                *(require_tool("smbclient"), f"//{HOST}/{SHARE}", "-p", str(self.port)),
                *("-m", "SMB3", "-A", str(login), *options),
                *("-c", "; ".join(commands)),
            ],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=patience_s,
        )
        return ran.stdout + ran.stderr

    def content(self, path: str) -> bytes:
        """A file as REST reads it."""
        return bytes(self.rest.get_file_client(path).download_file().readall())

    def path(self, name: str = "") -> str:
        """A path as smbprotocol takes it."""
        return rf"\\{HOST}\{SHARE}\{name}"


def mounted_share(folder: Path, *flags: str) -> Iterator[Mounted]:
    """A share on a server of its own, with these flags."""
    port = free_port()
    given = ("--smb", "--smb-port", str(port), *flags)
    with Server.start(data=folder / "data", test_clock=False, flags=given) as server:
        rest = ShareClient.from_connection_string(server.connection_string, SHARE)
        rest.create_share()
        yield Mounted(port, rest, folder)
        server.stop()
        output = server.output()
        assert server.exit_code == 0, output[-4000:]
        assert "Traceback" not in output, output[-4000:]


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Mounted]:
    yield from mounted_share(tmp_path)


@pytest.fixture
def in_the_clear(tmp_path: Path) -> Iterator[Mounted]:
    """Offer encryption; a client that does not use it has to sign."""
    yield from mounted_share(tmp_path, "--smb-encryption", "offered")


@pytest.fixture
def python(mounted: Mounted) -> Iterator[Mounted]:
    """A session of smbprotocol."""
    smbclient.register_session(
        HOST,
        username=DEVELOPMENT_ACCOUNT_NAME,
        password=DEVELOPMENT_ACCOUNT_KEY,
        port=mounted.port,
        encrypt=True,
        auth_protocol="ntlm",
    )
    yield mounted
    smbclient.delete_session(HOST, port=mounted.port)


@pytest.mark.parametrize("cipher", ["aes-128-gcm", "aes-256-gcm", "aes-128-ccm", "aes-256-ccm"])
def test_smbclient_puts_gets_renames_and_deletes(mounted: Mounted, cipher: str) -> None:
    options = (
        "--client-protection=encrypt",
        f"--option=client smb3 encryption algorithms={cipher}",
    )
    (mounted.folder / "large").write_bytes(LARGE)
    printed = mounted.samba("mkdir d", "cd d", "put large Large.bin", "ls", options=options)
    assert "NT_STATUS" not in printed, printed
    assert f"Large.bin                           A  {len(LARGE)}" in printed, printed
    assert mounted.content("d/large.BIN") == LARGE
    printed = mounted.samba(
        "cd d", "get LARGE.bin back", "rename Large.bin second", options=options
    )
    assert "NT_STATUS" not in printed, printed
    assert (mounted.folder / "back").read_bytes() == LARGE
    assert [one.name for one in mounted.rest.list_directories_and_files("d")] == ["second"]
    printed = mounted.samba("del d/second", "rmdir d", "ls", options=options)
    assert "NT_STATUS" not in printed
    assert not list(mounted.rest.list_directories_and_files())


@pytest.mark.parametrize("algorithm", ["aes-128-gmac", "aes-128-cmac", "hmac-sha256"])
def test_smbclient_signs_where_it_may(in_the_clear: Mounted, algorithm: str) -> None:
    options = ("--client-protection=sign", f"--option=client smb3 signing algorithms={algorithm}")
    (in_the_clear.folder / "large").write_bytes(LARGE)
    printed = in_the_clear.samba("put large", "get large back", options=options)
    assert "NT_STATUS" not in printed, printed
    assert (in_the_clear.folder / "back").read_bytes() == LARGE
    assert in_the_clear.content("large") == LARGE


PROTECTIONS = {
    "signed": ("--client-protection=sign",),
    "encrypted": ("--client-protection=encrypt",),
}


def copy_there_and_back(
    share: Mounted, size_mib: int, options: tuple[str, ...], patience_s: float = PATIENCE_S
) -> None:
    """smbclient puts a file of random bytes and gets it back: the digests are the same."""
    sent, back = hashlib.sha256(), hashlib.sha256()
    with (share.folder / "sent").open("wb") as file:
        for _ in range(size_mib):
            piece = os.urandom(MIB)
            sent.update(piece)
            file.write(piece)
    printed = share.samba("put sent Sent", options=options, patience_s=patience_s)
    assert "NT_STATUS" not in printed, printed
    printed = share.samba("get Sent back", options=options, patience_s=patience_s)
    assert "NT_STATUS" not in printed, printed
    assert share.rest.get_file_client("Sent").get_file_properties().size == size_mib * MIB
    with (share.folder / "back").open("rb") as file:
        while piece := file.read(MIB):
            back.update(piece)
    assert back.digest() == sent.digest()


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_smbclient_copies_a_large_file_there_and_back(
    in_the_clear: Mounted, protection: str
) -> None:
    copy_there_and_back(in_the_clear, 32, PROTECTIONS[protection])


def test_smbclient_sees_what_rest_has_stored(mounted: Mounted) -> None:
    mounted.rest.create_directory("from rest")
    mounted.rest.get_file_client("from rest/ä.txt").upload_file(b"text")
    printed = mounted.samba("ls", 'cd "from rest"', "get ä.txt back")
    assert "from rest                           D" in printed, printed
    assert (mounted.folder / "back").read_bytes() == b"text"


def test_smbclient_lists_the_shares_of_the_account(mounted: Mounted) -> None:
    printed = mounted.samba(options=("-L", HOST))
    assert f"{SHARE}       Disk" in printed, printed
    assert "IPC$            IPC" in printed


def test_another_key_mounts_nothing(mounted: Mounted) -> None:
    assert "NT_STATUS_LOGON_FAILURE" in mounted.samba("ls", key="d3Jvbmc=")


def test_smbclient_without_encryption_mounts_nothing(mounted: Mounted) -> None:
    printed = mounted.samba("ls", options=("--option=client max protocol=SMB2_10",))
    assert "NT_STATUS" in printed


def test_smbclient_uses_21_where_encryption_is_not_required(in_the_clear: Mounted) -> None:
    plain = in_the_clear
    (plain.folder / "old.txt").write_bytes(LARGE)
    options = ("--option=client max protocol=SMB2_10", "--client-protection=sign")
    printed = plain.samba("put old.txt", "ls", "get old.txt back.txt", options=options)
    assert "NT_STATUS" not in printed and "old.txt" in printed
    assert plain.content("old.txt") == LARGE
    assert (plain.folder / "back.txt").read_bytes() == LARGE
    assert "NT_STATUS" not in plain.samba("del old.txt", options=options)
    refused = plain.samba("ls", options=("--option=client max protocol=SMB2_02",))
    assert "NT_STATUS" in refused


def test_smbprotocol_writes_lists_renames_and_deletes(python: Mounted) -> None:
    smbclient.mkdir(python.path("d"), port=python.port)
    with smbclient.open_file(python.path(r"d\x"), mode="wb", port=python.port) as file:
        file.write(LARGE)
    assert python.content("d/x") == LARGE
    assert smbclient.stat(python.path(r"d\x"), port=python.port).st_size == len(LARGE)
    smbclient.rename(python.path(r"d\x"), python.path(r"d\y"), port=python.port)
    assert smbclient.listdir(python.path("d"), port=python.port) == ["y"]
    with smbclient.open_file(python.path(r"d\y"), mode="rb", port=python.port) as file:
        assert file.read() == LARGE
    smbclient.remove(python.path(r"d\y"), port=python.port)
    smbclient.rmdir(python.path("d"), port=python.port)
    assert not list(python.rest.list_directories_and_files())


def _past(mounted: Mounted) -> str:
    """A share whose file has changed since a snapshot. Returns the snapshot's token."""
    mounted.rest.create_directory("d")
    file = mounted.rest.get_file_client("d/f")
    file.upload_file(LARGE)
    taken = datetime.fromisoformat(str(mounted.rest.create_snapshot()["snapshot"])[:19])
    file.upload_file(b"AFTER")
    return taken.strftime("@GMT-%Y.%m.%d-%H.%M.%S")


def test_smbclient_reads_previous_versions_and_changes_none(mounted: Mounted) -> None:
    token = _past(mounted)
    printed = mounted.samba(f"ls {token}/d/*", f"get d/{token}/f back")
    assert f"f                                   A  {len(LARGE)}" in printed, printed
    assert (mounted.folder / "back").read_bytes() == LARGE
    for change in ("put back {}/d/f", "del {}/d/f", "rmdir {}/d", "mkdir {}/new"):
        printed = mounted.samba(change.format(token))
        assert "NT_STATUS_MEDIA_WRITE_PROTECTED" in printed, printed
    assert mounted.content("d/f") == b"AFTER"


def test_smbprotocol_lists_previous_versions_and_opens_one(python: Mounted) -> None:
    token = _past(python)
    tree = smbclient._pool.get_smb_tree(python.path("d"), port=python.port)[0]
    root = Open(tree, "")
    _create(root, CreateOptions.FILE_DIRECTORY_FILE)
    asked = SMB2IOCTLRequest()
    asked["ctl_code"] = CtlCode.FSCTL_SRV_ENUMERATE_SNAPSHOTS
    asked["file_id"] = root.file_id
    asked["max_output_response"] = 4096
    asked["flags"] = IOCTLFlags.SMB2_0_IOCTL_IS_FSCTL
    connection, session = tree.session.connection, tree.session.session_id
    sent = connection.send(asked, sid=session, tid=tree.tree_connect_id)
    answer = SMB2IOCTLResponse()
    answer.unpack(connection.receive(sent)["data"].get_value())
    found = answer["buffer"].get_value()
    assert found[:12] == struct.pack("<III", 1, 1, 52)
    assert found[12:].decode("utf-16-le") == f"{token}\0\0"
    root.close()
    warp = SMB2CreateTimewarpToken()
    warp["timestamp"] = datetime.strptime(token, "@GMT-%Y.%m.%d-%H.%M.%S").replace(tzinfo=UTC)
    context = SMB2CreateContextRequest()
    context["buffer_name"] = CreateContextName.SMB2_CREATE_TIMEWARP_TOKEN
    context["buffer_data"] = warp
    file = Open(tree, r"d\f")
    _create(file, CreateOptions.FILE_NON_DIRECTORY_FILE, [context])
    assert file.end_of_file == len(LARGE)
    assert file.read(len(LARGE) - 10, 100) == LARGE[-10:]
    file.close()


def _create(
    file: Open, options: int, contexts: list[SMB2CreateContextRequest] | None = None
) -> None:
    file.create(
        ImpersonationLevel.Impersonation,
        FilePipePrinterAccessMask.GENERIC_READ,
        0,
        ShareAccess.FILE_SHARE_READ,
        CreateDisposition.FILE_OPEN,
        options,
        contexts,
    )


def test_an_open_that_shares_nothing_stops_both_protocols(python: Mounted) -> None:
    file = python.rest.get_file_client("held")
    file.upload_file(b"text")
    with smbclient.open_file(python.path("held"), mode="rb", port=python.port):
        with pytest.raises(HttpResponseError) as refused:
            file.download_file().readall()
        assert refused.value.status_code == 409
        assert "SharingViolation" in str(refused.value)
        with pytest.raises(SMBOSError) as violation:
            smbclient.remove(python.path("held"), port=python.port)
        assert violation.value.ntstatus == STATUS_SHARING_VIOLATION
    assert python.content("held") == b"text"
