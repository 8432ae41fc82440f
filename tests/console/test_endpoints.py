"""The addresses of the API beneath `coordination`: what they take, and how they refuse."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from strongroom.auth.claims import SharedKeyClaim
from strongroom.console.endpoints import CoordinationPart, Document
from strongroom.servers.console.api.coordination import BreakAct, Coordination, GateAct
from strongroom.servers.console.api.parts import MountedRequest
from strongroom.servers.console.refusals import ApiRefusal
from strongroom.servers.console.viewers import Viewer
from strongroom.testing import InProcessServer
from tests.console.world import ACCOUNT, World


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with InProcessServer.start() as server:
        world = World(server)
        yield world
        world.view.close()


def asked(
    world: World,
    method: str,
    path: str,
    query: dict[str, str],
    if_match: str | None = None,
    body: bytes = b"",
) -> Document:
    viewer = Viewer(SharedKeyClaim(ACCOUNT), is_operator=True)
    request = MountedRequest(method, path, query, if_match, body, viewer)
    part = CoordinationPart(world.view, world.wall_ticks, bool)
    return world.run(part.answer(request))


IN = {"container": "locks"}


def test_a_gate_by_its_address(world: World) -> None:
    opened = asked(world, "POST", "/gates/go%2F%C3%A4%3Cb%3E/open", IN, '"1"', b'{"a": 1}')
    assert opened == GateAct(1, True, "1")
    assert asked(world, "POST", "/gates/go%2F%C3%A4%3Cb%3E/rearm", IN, "*") == GateAct(
        2, False, "2"
    )
    seen = asked(world, "GET", "", IN)
    assert isinstance(seen, Coordination)
    assert [one.name for one in seen.containers[0].records.gates] == ["go/ä<b>"]
    dots = IN | {"name": ".."}
    assert asked(world, "POST", "/gates/-/open", dots, None) == GateAct(1, True, "1")
    assert asked(world, "POST", "/locks/free/break", IN | {"kind": "election"}) == BreakAct(())


@pytest.mark.parametrize(
    ("method", "path", "query", "if_match", "body", "status"),
    [
        ("GET", "", {"container": "A"}, None, b"", 400),
        ("GET", "", {"container": "a/../b"}, None, b"", 400),
        ("GET", "", {"what": "x"}, None, b"", 400),
        ("GET", "", {"limit": "0"}, None, b"", 400),
        ("GET", "", {"limit": "²"}, None, b"", 400),
        ("GET", "", {"wait_s": "1e9"}, None, b"", 400),
        ("GET", "", {"after": "a" * 257}, None, b"", 400),
        ("GET", "", {"store": "none"}, None, b"", 404),
        ("POST", "", {}, None, b"", 405),
        ("GET", "/gates/go/open", IN, None, b"", 405),
        ("POST", "/gates/go", IN, None, b"", 404),
        ("POST", "/gates/go/break", IN, None, b"", 404),
        ("POST", "/gates/a/b/open", IN, None, b"", 404),
        ("POST", "/gates//open", IN, None, b"", 400),
        ("POST", "/gates/%FF/open", IN, None, b"", 400),
        ("POST", f"/gates/{'a' * 300}/open", IN, None, b"", 400),
        ("POST", "/gates/go/open", {}, None, b"", 400),
        ("POST", "/gates/go/open", IN | {"store": "x"}, None, b"", 400),
        ("POST", "/gates/go/open", IN, "no quotes", b"", 400),
        ("POST", "/gates/go/open", IN, '"7"', b"", 412),
        ("POST", "/gates/go/open", IN, None, b"{", 400),
        ("POST", "/gates/go/open", IN, None, b"NaN", 400),
        ("POST", "/gates/go/open", IN, None, b"[" * 30_000, 400),
        ("POST", "/gates/go/open", IN, None, b'"%s"' % (b"a" * 40_000), 413),
        ("POST", "/locks/a/break", IN | {"kind": "gate"}, None, b"", 400),
        ("POST", "/locks/a/break", IN, '"seen"', b"", 412),
        ("POST", "/gates/go/open", IN | {"name": "x"}, None, b"", 400),
        ("POST", "/locks/a/break", {"store": "none"}, None, b"", 404),
    ],
)
def test_what_is_refused(
    world: World,
    method: str,
    path: str,
    query: dict[str, str],
    if_match: str | None,
    body: bytes,
    status: int,
) -> None:
    with pytest.raises(ApiRefusal) as refused:
        asked(world, method, path, query, if_match, body)
    assert (refused.value.status, bool(refused.value.text)) == (status, True)
    assert len(refused.value.text) < 500


def test_one_viewer_cannot_occupy_the_readers(world: World) -> None:
    part = CoordinationPart(world.view, world.wall_ticks, bool)
    viewer = Viewer(SharedKeyClaim(ACCOUNT), is_operator=True)

    def reading(change: str, wait_s: str) -> MountedRequest:
        query = IN | {"change": change, "wait_s": wait_s}
        return MountedRequest("GET", "", query, None, b"", viewer)

    async def play() -> None:
        seen = await part.answer(reading("", "0"))
        assert isinstance(seen, Coordination)
        waits = [asyncio.create_task(part.answer(reading(seen.change, "20"))) for _ in range(16)]
        await asyncio.sleep(0)
        with pytest.raises(ApiRefusal) as refused:
            await part.answer(reading("", "0"))
        assert refused.value.status == 429
        for one in waits:
            one.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        assert isinstance(await part.answer(reading("", "0")), Coordination)

    world.run(play())
