"""A part of a batch takes headers over from the request around it (B-BAT-05). Other requests are
served during a long batch."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from strongroom.servers.requests import batches
from strongroom.servers.requests.batches import with_bearer
from strongroom.slices import SLICE_S, SliceTurns
from strongroom.wire.core.http import Headers, Response
from strongroom.wire.core.multipart import PartRequest

KEY = ("Authorization", "SharedKey a:AAAA")
TOKEN = ("authorization", "Bearer abc")
URL = "/c/b"
CASES = [
    (TOKEN, URL, (), "Bearer abc"),
    (("Authorization", "bearer abc"), URL, (("x-ms-date", "now"),), "bearer abc"),
    (TOKEN, URL, (KEY,), "SharedKey a:AAAA"),
    (TOKEN, URL, (("AUTHORIZATION", "Bearer own"),), "Bearer own"),
    (TOKEN, f"{URL}?sv=2020-02-10&sig=x", (), None),
    (KEY, URL, (), None),
    (("Authorization", "bearerabc"), URL, (), None),
    (("x-other", "Bearer abc"), URL, (), None),
]


@pytest.mark.parametrize(("whole", "url", "own", "seen"), CASES)
def test_only_a_part_without_credentials_has_the_token_of_the_whole(
    whole: tuple[str, str], url: str, own: tuple[tuple[str, str], ...], seen: str | None
) -> None:
    part = PartRequest("DELETE", url, (*own, ("host", "elsewhere")))
    found = Headers(with_bearer(part, Headers([("Host", "here"), whole])))
    assert (found.get("authorization"), found.get("host")) == (seen, "here")
    assert found.repeats == ()


PARTS_IN_A_ROW = 16


class Turns:
    """Counts the work that is done in each turn of the loop.

    `slices` has a clock that follows this work: a slice is over with the part PARTS_IN_A_ROW.
    """

    def __init__(self) -> None:
        self.now = 0
        self.slices = SliceTurns(lambda: sum(self.done.values()) * SLICE_S / (PARTS_IN_A_ROW - 1.5))
        self.done = Counter[int]()

    @property
    def context(self) -> Any:
        """Return a context that has nothing but the turns."""
        return SimpleNamespace(services=SimpleNamespace(turns=self.slices))

    async def count(self) -> None:
        while True:
            self.now += 1
            await asyncio.sleep(0)

    def note(self) -> None:
        self.done[self.now] += 1


def test_parts_begin_some_each_turn_and_are_answered_in_order() -> None:
    async def scenario() -> None:
        turns = Turns()
        counting = asyncio.create_task(turns.count())

        async def respond(context: Any, part: Any) -> Response:
            turns.note()
            return Response(part)

        parts: Any = range(200, 350)
        answers = await batches._run_concurrently(turns.context, parts, respond)
        counting.cancel()
        assert [answer.status for answer in answers] == list(parts)
        assert max(turns.done.values()) <= PARTS_IN_A_ROW

    asyncio.run(scenario())


def test_parts_are_read_some_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        turns = Turns()
        counting = asyncio.create_task(turns.count())

        def read(whole: Any, part: Any) -> Any:
            turns.note()
            return SimpleNamespace(operation=SimpleNamespace(name="Delete Blob"), part=part)

        monkeypatch.setattr(batches, "_read", read)
        monkeypatch.setattr(batches, "_check_allowed", lambda whole, part: None)
        parts: Any = range(256)
        whole: Any = SimpleNamespace(context=turns.context)
        found: Any = await batches._read_all(whole, parts)
        counting.cancel()
        assert [one.part for one in found] == list(parts)
        assert max(turns.done.values()) <= PARTS_IN_A_ROW

    asyncio.run(scenario())
