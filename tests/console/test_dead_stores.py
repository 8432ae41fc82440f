"""A further store that does not answer delays its own panel, and nothing else."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator

import pytest

from strongroom.console.other_stores import OtherStorePanel
from strongroom.console.record_pages import PageOf
from strongroom.console.store_sources import StoreSource
from strongroom.coordination import StoreUnavailable
from strongroom.coordination.errors import CoordinationError
from strongroom.testing.ports import free_port


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", free_port())) as server:
        yield f"{server.getsockname()[1]}"


def test_a_silent_store_does_not_delay_another(silent: str) -> None:
    async def play() -> tuple[float, float]:
        dead = OtherStorePanel(
            StoreSource("dead", f"redis://user:secret@127.0.0.1:{silent}/0"), may_act=True
        )
        alive = OtherStorePanel(StoreSource("alive", "memory://alive"), may_act=False)
        began_s = time.monotonic()
        waiting = asyncio.create_task(dead.read(PageOf()))
        await asyncio.sleep(0)
        await alive.read(PageOf())
        other_s = time.monotonic() - began_s
        assert not waiting.done()
        with pytest.raises(StoreUnavailable, match="'dead' did not answer") as refused:
            await waiting
        with pytest.raises(StoreUnavailable, match="look again before"):
            await dead.act(lambda client: client.show("a"), "ann")
        assert "secret" not in f"{refused.value}{dead.shown}"
        assert dead.shown.url == f"redis://127.0.0.1:{silent}/0"
        dead.close()
        alive.close()
        return other_s, time.monotonic() - began_s

    other_s, dead_s = asyncio.run(play())
    assert other_s < dead_s


@pytest.mark.parametrize("url", ["nonsense://x", "redis://127.0.0.1:{port}/0", "http://h/a/B"])
def test_a_store_that_cannot_be_opened_says_why(url: str) -> None:
    async def play() -> None:
        panel = OtherStorePanel(StoreSource("x", url.format(port=free_port())), may_act=False)
        with pytest.raises(CoordinationError):
            await panel.read(PageOf())
        panel.close()

    asyncio.run(play())
