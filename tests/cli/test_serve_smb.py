"""`strongroom serve --smb`: a real process, which prints Debian's mount command."""

from __future__ import annotations

import asyncio
import socket
import struct
from pathlib import Path

import pytest

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME
from strongroom.cli.exits import Exit
from strongroom.cli.serving.banner import mount_rows
from strongroom.testing import Server
from strongroom.testing.ports import HOST, free_port, port_flags
from strongroom.wire.smb.framing import prefix
from strongroom.wire.smb.header import Header, read_header, write_header
from tests.cli.command import in_process
from tests.servers.smb.messages import negotiate_body


async def _negotiated_dialect(port: int) -> int:
    reader, writer = await asyncio.open_connection(HOST, port)
    message = write_header(Header()) + negotiate_body((0x0302, 0x0311), (2,), (2,))
    writer.write(prefix(len(message)) + message)
    size = int.from_bytes(await reader.readexactly(4), "big")
    answer = await reader.readexactly(size)
    writer.close()
    assert read_header(answer).status == 0
    return int(struct.unpack_from("<H", answer, 68)[0])


def test_shares_are_served_and_it_is_printed_how_to_mount_them(tmp_path: Path) -> None:
    port = free_port()
    flags = ("--smb", "--smb-port", str(port))
    with Server.start(data=tmp_path / "data", flags=flags) as server:
        printed = server.output()
        for system in ("smbclient", "Linux", "Windows", "macOS", "Python"):
            assert system in printed
        assert f"port={port},seal,username={DEVELOPMENT_ACCOUNT_NAME}" in printed
        assert asyncio.run(_negotiated_dialect(port)) == 0x0311


def test_without_the_flag_no_share_is_served() -> None:
    with Server.start() as server:
        assert "smbclient" not in server.output()


def test_the_development_key_is_not_served_to_other_machines() -> None:
    flags = ("--smb", "--smb-port", str(free_port()), "--host", "0.0.0.0")
    ran = in_process("serve", "--in-memory", *port_flags(), *flags)
    assert ran.code == Exit.SETTINGS
    assert "development key" in ran.err


@pytest.mark.parametrize("flag", [("--smb-port", "4450"), ("--smb-encryption", "offered")])
def test_a_flag_of_smb_by_itself_is_refused(flag: tuple[str, str]) -> None:
    ran = in_process("serve", "--in-memory", *port_flags(), *flag)
    assert ran.code == Exit.USAGE
    assert f"{flag[0]} does nothing without --smb" in ran.err


def test_a_port_of_smb_that_is_taken_is_named() -> None:
    port = free_port()
    with socket.create_server((HOST, port)):
        ran = in_process("serve", "--in-memory", *port_flags(), "--smb", "--smb-port", str(port))
    assert ran.code == Exit.LISTEN
    assert f"port {port}" in ran.err


@pytest.mark.parametrize("host", ["127.0.0.1", "store.example.net", "fd00::1"])
def test_each_system_has_a_command(host: str) -> None:
    rows = mount_rows(host, 4450, "account")
    assert all("4450" in text and "account" in text for _, text in rows)
    assert all(host in text for _, text in rows)
