"""Polls of the tail that wait: how many may, which makes room, and that each frees its place."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any

import pytest

from strongroom.auth.claims import SharedKeyClaim
from strongroom.servers.console.api.documents import RequestsPage
from strongroom.servers.console.requests.kept import KeptRequests
from strongroom.servers.console.requests.part import KeptRequestsPart
from strongroom.servers.console.requests.polls import POLLS_MAX, VIEWER_POLLS_MAX, WaitingPolls
from strongroom.servers.console.viewers import Viewer
from strongroom.setup.files import RequestBytes
from strongroom.slices import SliceTurns
from strongroom.wire.core.http import Headers, Request
from tests.servers.console.served import SHOP, serving
from tests.servers.console.tail_server import Accounts

QUERY = {"after": "0", "wait_s": "30"}


def viewer(name: str) -> Viewer:
    return Viewer(SharedKeyClaim(name), is_operator=False)


class Page:
    """One page of a browser, and the part that it polls."""

    def __init__(self, part: KeptRequestsPart, account: str = "shop") -> None:
        self.request = Request("GET", "/", Headers([]), RequestBytes(b""))
        on_disconnect = self.request.on_disconnect
        self.answer = asyncio.ensure_future(part.page(viewer(account), QUERY, on_disconnect))


def part_of() -> KeptRequestsPart:
    return KeptRequestsPart(KeptRequests(), SliceTurns(), Accounts(), dict)


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_one_poll_too_many_ends_the_oldest_one_of_the_same_viewer() -> None:
    async def scenario() -> None:
        part = part_of()
        other = Page(part, "bank")
        pages = [Page(part) for _ in range(VIEWER_POLLS_MAX)]
        await turns()
        assert len(part.polls) == VIEWER_POLLS_MAX + 1
        assert not any(page.answer.done() for page in pages)
        more = Page(part)
        answer = await pages[0].answer
        assert (answer.requests, answer.newest) == ((), 0)
        await turns()
        assert not any(page.answer.done() for page in (*pages[1:], more, other))
        assert len(part.polls) == VIEWER_POLLS_MAX + 1
        await ended(*pages, more, other)
        assert len(part.polls) == 0

    run(scenario)


def test_of_all_viewers_the_one_with_the_most_makes_room() -> None:
    async def scenario() -> None:
        part = part_of()
        few = Page(part, "few")
        pages = [Page(part, f"v{number // 16}") for number in range(POLLS_MAX - 1)]
        await turns()
        assert len(part.polls) == POLLS_MAX
        more = Page(part, "more")
        await pages[0].answer
        await turns()
        assert len(part.polls) == POLLS_MAX
        assert not any(page.answer.done() for page in (*pages[1:], few, more))
        await ended(*pages, few, more)
        assert len(part.polls) == 0

    run(scenario)


async def ended(*pages: Page) -> None:
    for page in pages:
        page.answer.cancel()
    await asyncio.gather(*(page.answer for page in pages), return_exceptions=True)


class Server(KeptRequests):
    """Rings that may break, of a server that may stop."""

    def __init__(self) -> None:
        super().__init__()
        self.is_stopping = self.is_broken = False
        self.catch_up = self._break

    def _break(self) -> None:
        if self.is_broken:
            raise ValueError("a record cannot be read")


async def cancelled(page: Page, server: Server) -> None:
    page.answer.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await page.answer


async def disconnected(page: Page, server: Server) -> None:
    page.request.mark_disconnected()
    assert (await page.answer).requests == ()


async def stopped(page: Page, server: Server) -> None:
    server.is_stopping = True
    assert (await page.answer).requests == ()


async def failed(page: Page, server: Server) -> None:
    server.is_broken = True
    with pytest.raises(ValueError, match="cannot be read"):
        await page.answer


@pytest.mark.parametrize("end", [cancelled, disconnected, stopped, failed])
def test_a_poll_frees_its_place_however_it_ends(
    end: Callable[[Page, Server], Awaitable[None]],
) -> None:
    async def scenario() -> None:
        server = Server()
        part = KeptRequestsPart(server, SliceTurns(), Accounts(), dict, lambda: server.is_stopping)
        page = Page(part)
        await turns()
        assert len(part.polls) == 1
        await end(page, server)
        assert len(part.polls) == 0

    run(scenario)


def test_who_has_left_already_does_not_wait() -> None:
    async def scenario() -> None:
        part = part_of()
        request = Request("GET", "/", Headers([]), RequestBytes(b""))
        request.mark_disconnected()
        page = await part.page(viewer("shop"), QUERY, request.on_disconnect)
        assert isinstance(page, RequestsPage)
        assert len(part.polls) == 0

    run(scenario)


def test_a_question_that_waits_for_nothing_takes_no_place() -> None:
    async def scenario() -> None:
        part = part_of()
        part.polls = WaitingPolls(viewer_max=1)
        waiting = Page(part)
        await turns()
        await part.page(viewer("shop"), {}, lambda _: None)
        assert not waiting.answer.done()
        await ended(waiting)

    run(scenario)


def test_polls_over_connections_are_answered_without_an_error() -> None:
    count = VIEWER_POLLS_MAX + 4
    with serving(SHOP) as served, ThreadPoolExecutor(count) as pages:
        waiting = {pages.submit(served.api, "requests?after=0&wait_s=30") for _ in range(count)}
        for _ in range(count - VIEWER_POLLS_MAX):
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            assert {one.result().status for one in done} == {200}
            if len(waiting) <= VIEWER_POLLS_MAX:
                break
        served.own("blob").ask("/shop/a/b")  # a request that ends those that still wait
        assert {one.result().status for one in waiting} == {200}
