"""Inspecting locks from outside, listing and breaking them."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from strongroom.coordination import Client, LockLost
from strongroom.coordination.stores.memory import MemoryStore


@pytest.mark.parametrize("server_lease", [False, True])
def test_show(server_lease: bool) -> None:
    store = MemoryStore(server_lease=server_lease)
    holder, viewer = Client(store, label="holder"), Client(store, label="viewer")
    assert viewer.show("a") is None
    with holder.lock("a", ttl=20, value=5, fair=True) as held:
        for client in (viewer, holder):
            view = client.show("a")
            assert view is not None and view.held
            assert (view.who, view.fence, view.nonce) == ("holder", 1, held.nonce)
            assert (view.value, view.ttl_s) == (5, 20) and 0 < view.left_s < 30
        waiter = threading.Thread(target=viewer.lock("a", fair=True, wait=20).acquire)
        waiter.start()
        while not (queued := holder.show("a")) or not queued.waiting:
            time.sleep(0.01)
        assert queued.waiting == ("viewer",)
    waiter.join(20)
    view = holder.show("a")
    assert view is not None and view.held and view.who == "viewer"


def test_a_free_lock_is_not_held() -> None:
    client = Client(MemoryStore())
    with client.lock("a"):
        pass
    view = client.sibling().show("a")
    assert view is not None and not view.held and view.nonce == "" and view.fence == 1


def test_list() -> None:
    client = Client(MemoryStore())
    for name in ("b", "a/b", "ä"):
        with client.lock(name):
            pass
    with client.election("e").lead():
        pass
    assert sorted(client.list_names()) == ["a/b", "b", "ä"]
    assert client.list_names("election") == ["e"]


@pytest.mark.parametrize("server_lease", [False, True])
def test_break(server_lease: bool) -> None:
    client = Client(MemoryStore(server_lease=server_lease), label="holder")
    admin = client.sibling("admin")
    assert admin.break_lock("a") is None
    held = client.lock("a", ttl=60, alert=True).acquire()
    broken = admin.break_lock("a")
    assert broken is not None and broken.nonce == held.nonce
    assert held.lost.wait(20) and "by an administrator (broken by " in held.reason
    with pytest.raises(LockLost):
        held.check()
    taken = admin.lock("a").try_acquire()
    assert taken is not None and taken.fence == 3
    taken.release()
    assert admin.break_lock("a") is None


def test_asyncio() -> None:
    async def play() -> None:
        client = Client(MemoryStore(), label="holder")
        held = await client.aio.lock("a", alert=True).acquire()
        view = await client.aio.show("a")
        assert view is not None and view.held
        assert await client.aio.list_names() == ["a"]
        assert await client.sibling().aio.break_lock("a") is not None
        assert "administrator" in await asyncio.wait_for(held.wait_lost(), 20)

    asyncio.run(play())
