"""`strongroom files`: lists the clients with open files over SMB, and closes the files by force."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from azure.storage.fileshare import ShareServiceClient

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.cli.exits import Exit
from strongroom.semantics.file.accesses import Disposition
from strongroom.services.core.runner import Services
from strongroom.services.file.handles import opening
from strongroom.services.file.handles.model import Handle
from strongroom.testing import InProcessServer
from strongroom.testing.ports import HOST, free_port
from tests.cli.command import Ran, in_process
from tests.services.handle_calls import Mount

T = TypeVar("T")
NAMES = ("a.txt", "d/b.txt", "d/é c.txt")


class Opened:
    """A server with files that a client of SMB has open."""

    def __init__(self, server: InProcessServer) -> None:
        self.server = server
        with ShareServiceClient.from_connection_string(server.connection_string) as account:
            account.create_share("documents").create_directory("d")
        self.handles = self.inside(self._open)

    def inside(self, work: Callable[[Services], Awaitable[T]]) -> T:
        """Do something on the server's event loop."""

        async def done() -> T:
            return await work(self.server._app.services)

        return asyncio.run_coroutine_threadsafe(done(), self.server.loop).result(60)

    async def _open(self, on: Services) -> dict[str, Handle]:
        access = await opening.connect_share(on, DEVELOPMENT_ACCOUNT_NAME, "documents")
        mount = Mount(on, access, "ann", answers=True)
        return {name: await mount.handle(name, disposition=Disposition.OPEN_IF) for name in NAMES}

    def run(self, *arguments: object) -> Ran:
        text = self.server.connection_string
        return in_process("files", *arguments, AZURE_STORAGE_CONNECTION_STRING=text)

    def listed(self, *arguments: object) -> list[dict[str, Any]]:
        ran = self.run("handles", *arguments, "--json")
        assert ran.code == 0, ran.err
        found: list[dict[str, Any]] = json.loads(ran.out)
        return found

    def paths(self, *arguments: object) -> list[str]:
        return sorted(one["path"] for one in self.listed(*arguments))


@pytest.fixture
def opened() -> Iterator[Opened]:
    with InProcessServer.start() as server:
        yield Opened(server)


def test_handles_are_listed_of_a_share_a_directory_and_a_file(opened: Opened) -> None:
    assert opened.paths("documents") == sorted(NAMES)
    assert opened.paths("documents/a.txt") == ["a.txt"]
    assert opened.paths("documents/d") == []
    assert opened.paths("documents/d", "--recursive") == ["d/b.txt", "d/é c.txt"]
    assert opened.paths("/documents/d/é c.txt") == ["d/é c.txt"]
    (one,) = opened.listed("documents/a.txt")
    assert one["handle"] == str(opened.handles["a.txt"].id)
    assert one["client"] == "127.0.0.1:50000"
    assert set(one["rights"]) == {"Read", "Write", "Delete"}


def test_as_text_each_handle_is_a_line(opened: Opened) -> None:
    ran = opened.run("handles", "documents/a.txt")
    assert ran.code == 0
    (line,) = ran.out.splitlines()
    for word in (str(opened.handles["a.txt"].id), "127.0.0.1:50000", "Read+Write", "/a.txt"):
        assert word in line
    ran = opened.run("handles", "documents/d")
    assert (ran.code, ran.out) == (0, "No client of SMB has anything open in documents/d.\n")


def test_one_handle_is_closed_by_force(opened: Opened) -> None:
    handle = opened.handles["d/b.txt"]
    ran = opened.run("close", "documents", "--handle", handle.id)
    assert (ran.code, ran.out) == (0, "1 handle is closed.\n")
    assert handle.is_closed
    assert opened.paths("documents") == ["a.txt", "d/é c.txt"]
    ran = opened.run("close", "documents", "--handle", handle.id)
    assert ran.code == Exit.REFUSED
    assert "nobody has a handle" in ran.err


def test_all_handles_of_a_place_are_closed(opened: Opened) -> None:
    ran = opened.run("close", "documents/d", "--all", "--recursive", "--json")
    assert (ran.code, json.loads(ran.out)) == (0, {"closed": 2, "failed": 0})
    assert opened.paths("documents") == ["a.txt"]
    assert opened.run("close", "documents", "--all").out == "1 handle is closed.\n"
    assert opened.run("close", "documents", "--all").out == "0 handles are closed.\n"


def test_what_the_server_refuses_is_one_line(opened: Opened) -> None:
    for place, code in (
        ("nothing-here", "ShareNotFound"),
        ("documents/nothing", "ResourceNotFound"),
        ("documents/none/b", "ParentNotFound"),
    ):
        ran = opened.run("handles", place)
        assert ran.code == Exit.REFUSED
        assert ran.err.startswith(f"strongroom: {code}: ")
        assert len(ran.err.splitlines()) == 1
    ran = opened.run("handles", "documents/a.txt", "--recursive")
    assert (ran.code, "InvalidHeaderValue" in ran.err) == (Exit.REFUSED, True)


def test_the_key_comes_from_the_accounts_file(opened: Opened, tmp_path: Path) -> None:
    given = ("add", DEVELOPMENT_ACCOUNT_NAME, "--data", tmp_path, "--key-stdin")
    assert in_process("account", *given, stdin=DEVELOPMENT_ACCOUNT_KEY).code == 0
    flags = ("--account", DEVELOPMENT_ACCOUNT_NAME, "--data", tmp_path)
    ran = in_process("files", "handles", "documents", *flags, "--endpoint", opened.server.file_url)
    assert (ran.code, len(ran.out.splitlines())) == (0, 3)
    in_process("account", "rotate", DEVELOPMENT_ACCOUNT_NAME, "--data", tmp_path)
    ran = in_process(
        "files", "handles", "documents", *flags, "--endpoint", f"{opened.server.file_url}/"
    )
    assert (ran.code, "AuthenticationFailed" in ran.err) == (Exit.REFUSED, True)
    ran = in_process("files", "handles", "documents", "--account", "other", "--data", tmp_path)
    assert (ran.code, "no account 'other'" in ran.err) == (Exit.SETTINGS, True)


def test_a_server_that_does_not_answer(opened: Opened) -> None:
    nobody = f"http://{HOST}:{free_port()}"
    ran = opened.run("handles", "documents", "--endpoint", nobody)
    assert ran.code == Exit.UNAVAILABLE
    assert f"{nobody} does not answer" in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("close", "documents"), "--handle ID for one, or --all"),
        (("close", "documents", "--all", "--handle", "1"), "--handle ID for one, or --all"),
        (("close", "documents", "--handle", "all"), "give the number"),
        (("handles", "/"), "give SHARE or SHARE/PATH"),
        (("handles", "documents", "--endpoint", "here"), "give a URL"),
        (("handles", "documents", "--endpoint", "http://[::1"), "give a URL"),
        (("handles", "documents", "--endpoint", "http:///"), "give a URL"),
        (("handles", "documents", "--endpoint", "http://127.0.0.1:99999"), "give a URL"),
        (("handles", "documents/a\udcff"), "UTF-8"),
    ],
)
def test_flags_that_cannot_be_used(arguments: tuple[str, ...], said: str) -> None:
    ran = in_process("files", *arguments)
    assert ran.code == Exit.USAGE
    assert said in ran.err


_NO_URL = "AccountName=a;AccountKey=AA==;FileEndpoint="


@pytest.mark.parametrize(
    "text",
    [
        "AccountName=a",
        "AccountName=a;AccountKey=?",
        f"{_NO_URL}http://[::1",
        f"{_NO_URL}127.0.0.1:10003",
    ],
)
def test_a_connection_string_that_cannot_be_used(text: str) -> None:
    ran = in_process("files", "handles", "documents", AZURE_STORAGE_CONNECTION_STRING=text)
    assert ran.code == Exit.SETTINGS
