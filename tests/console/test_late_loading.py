"""What the console needs only when somebody looks is not loaded when a server starts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any, cast

import msgspec
import pytest

from strongroom.console.opening import OpenView
from strongroom.console.serving import LatePart
from strongroom.servers.console.api.parts import MountedRequest
from strongroom.servers.console.refusals import ApiRefusal

_LATE = (
    "strongroom.coordination",
    "strongroom.console.opening",
    "strongroom.servers.console.oidc",
    "strongroom.servers.console.requests.replay",
    "strongroom.servers.console.requests.rules",
    "strongroom.servers.console.requests.sdk_calls",
    "strongroom.servers.console.requests.signatures",
)
_START = "import strongroom.app, strongroom.console.serving, sys; print(*sys.modules)"


@pytest.fixture(scope="module")
def loaded() -> list[str]:
    """The modules that a server with a console has loaded when it starts."""
    command = [sys.executable, "-c", _START]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("module", _LATE)
def test_it_is_not_loaded_at_the_start(loaded: list[str], module: str) -> None:
    assert "strongroom.servers.console.listener" in loaded
    assert [name for name in loaded if name == module or name.startswith(f"{module}.")] == []


class Document(msgspec.Struct, frozen=True):
    text: str


class View:
    """In place of an OpenView, whose opening fails or waits as often as it is told to."""

    def __init__(self, failures: int = 0, waits: bool = False) -> None:
        self.part = self
        self.failures, self.waits = failures, waits
        self.opened = self.closed = 0
        self.is_asked = asyncio.Event()

    async def open(self) -> OpenView:
        self.opened += 1
        self.is_asked.set()
        if self.waits:
            await asyncio.Event().wait()
        if self.opened <= self.failures:
            raise OSError("no more files")
        return cast(OpenView, self)

    async def answer(self, asked: Any) -> msgspec.Struct:
        return Document("here")

    def close(self) -> None:
        self.closed += 1


ASKED = cast(MountedRequest, None)


def test_an_opening_that_failed_is_tried_again() -> None:
    async def play() -> None:
        view = View(failures=1)
        part = LatePart(view.open)
        with pytest.raises(OSError):
            await part.answer(ASKED)
        assert await part.answer(ASKED) == Document("here")
        part.close()
        assert (view.opened, view.closed) == (2, 1)

    asyncio.run(play())


def test_a_part_that_is_closed_opens_nothing() -> None:
    async def play() -> None:
        view = View()
        part = LatePart(view.open)
        part.close()
        with pytest.raises(ApiRefusal) as refused:
            await part.answer(ASKED)
        assert (refused.value.status, view.opened) == (503, 0)

    asyncio.run(play())


def test_who_waits_for_the_opening_is_told_that_the_server_stops() -> None:
    async def play() -> None:
        view = View(waits=True)
        part = LatePart(view.open)
        waiting = asyncio.create_task(part.answer(ASKED))
        await view.is_asked.wait()
        part.close()
        with pytest.raises(ApiRefusal) as refused:
            await waiting
        assert (refused.value.status, view.opened) == (503, 1)

    asyncio.run(play())
