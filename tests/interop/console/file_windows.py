"""What tests of files do in a window of the console, and the server that speaks SMB beside it.

Lives here: the server, what is stored before a test, addresses and tables of the view. Must not
live here: what is expected (test_files.py), the client of SMB (smb_opens.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Locator

from strongroom.testing.ports import free_port
from strongroom.testing.server import Server
from tests.cli.command import in_process
from tests.conformance.client import Client
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import KEY, Served

FILE = {"x-ms-type": "file"}


@dataclass(frozen=True, slots=True)
class FilesServed(Served):
    """A server that speaks SMB too, and keeps deleted shares; `client` is of its File service."""

    smb_port: int


@contextmanager
def files_server(data: Path) -> Iterator[FilesServed]:
    """Serve the development account from a new data directory, with a console and SMB."""
    for command in (
        ("add", KEY.account, "--key-stdin"),
        ("set", KEY.account, "--share-retention", "2d"),
    ):
        assert in_process("account", *command, "--data", data, stdin=KEY.key).code == 0
    port, smb_port = free_port(), free_port()
    flags = ("--console-port", str(port), "--smb", "--smb-port", str(smb_port))
    with Server.start(data=data, test_clock=False, flags=flags) as server:
        client = Client(urlsplit(server.file_url).port or 0, KEY)
        yield FilesServed(server, f"http://127.0.0.1:{port}", client, smb_port)
        client.close()


def put_file(served: Served, path: str, content: bytes, **headers: str) -> None:
    size = {"x-ms-content-length": str(len(content))}
    assert served.client.put(path, {**FILE, **size, **headers}).status == 201
    if content:
        written = {"x-ms-write": "update", "x-ms-range": f"bytes=0-{len(content) - 1}"}
        assert served.client.put(f"{path}?comp=range", written, content).status == 201


def make_directory(served: Served, path: str) -> None:
    assert served.client.put(f"{path}?restype=directory").status == 201


def stored(served: Served, path: str) -> bytes:
    return served.client.get(path).body


def names_in(served: Served, share: str) -> str:
    """The list of a share's root, as it is sent."""
    return served.client.get(f"/{share}?restype=directory&comp=list").body.decode()


def address(share: str, path: str = "") -> str:
    return f"/files/{KEY.account}/{share}" + (f"/{path}" if path else "")


def files_table(console: Console) -> Locator:
    return console.page.get_by_role("table", name="Directories and files", exact=True)


def upload(console: Console, *files: Path) -> None:
    console.page.get_by_label("Files to upload").set_input_files(list(files))
