"""A share that nobody uses is given up after a while, and never under what relies on it."""

from __future__ import annotations

import asyncio

from strongroom.engines.base import Partition
from strongroom.operations.file import file
from strongroom.services.core.runner import Services
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.opens.open_node import OpenNode
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.opens.share_holds import ShareHolds
from strongroom.services.file.opens.share_leaving import IDLE_S, REFUSED_S, ShareLeaving
from strongroom.store.core import keys
from tests.services import file_calls as do
from tests.services import handle_calls as smb
from tests.services.container_calls import refused, run
from tests.services.gateways.test_share_holds import BUSY, with_file
from tests.services.gateways.test_two_gateways import Gate


def leaving(on: Services) -> ShareLeaving:
    return ShareLeaving(on.held.of(ShareHolds), on.held.of(Opens))


def looks(on: Services, *times_s: float) -> list[int]:
    """Look for idle shares at these times; return those that are given up at the last."""
    found: list[int] = []
    for now_s in times_s:
        found = leaving(on).release_idle(now_s)
    return found


async def in_task(work: object) -> None:
    """A request is a task of its own; the test's own task would use the share until its end."""
    await asyncio.ensure_future(work)  # type: ignore[call-overload]


async def begun() -> list[Services]:
    both: list[Services] = []

    async def begin() -> None:
        both.extend(await with_file())

    await in_task(begin())
    return both


def test_a_share_is_given_up_when_nobody_used_it_for_a_while() -> None:
    async def test() -> None:
        holder, other = await begun()
        assert looks(holder, 0.0, IDLE_S - 1) == []
        assert await refused(do.look(other, "f")) == BUSY
        assert len(looks(holder, IDLE_S)) == 1
        await in_task(do.look(other, "f"))
        assert await refused(do.look(holder, "f")) == BUSY

    run(test)


def test_what_is_open_in_the_table_keeps_the_share() -> None:
    """A file that is removed after its last handle has no handle, and no request."""

    async def test() -> None:
        holder, _ = await begun()
        (share,) = holder.held.of(ShareHolds)._shares
        removed, opens = Partition(keys.files(share), b"removed"), holder.held.of(Opens)
        opens._nodes[removed] = OpenNode()
        assert looks(holder, 0.0, IDLE_S, 2 * IDLE_S) == []
        leaving(holder).release_unused()
        del opens._nodes[removed]
        assert len(looks(holder, 3 * IDLE_S, 4 * IDLE_S)) == 1

    run(test)


def test_each_use_begins_the_time_anew() -> None:
    async def test() -> None:
        holder, _ = await begun()
        looks(holder, 0.0)
        await in_task(do.look(holder, "f"))
        assert looks(holder, IDLE_S) == []
        assert looks(holder, 2 * IDLE_S - 1) == []
        assert len(looks(holder, 2 * IDLE_S)) == 1

    run(test)


def test_a_request_under_way_keeps_the_share_however_long_it_takes() -> None:
    """Between its steps a request is in no table. If the share moved then, its commit would pass
    the locks of the next gateway's clients."""

    async def test() -> None:
        holder, other = await begun()
        gate = Gate(holder)
        slow = asyncio.ensure_future(do.run(holder, file.DELETE_FILE, "f", OnPath()))
        await gate.reached.wait()
        assert looks(holder, 0.0, IDLE_S, 3 * IDLE_S) == []
        assert await refused(do.look(other, "f")) == BUSY
        gate.open()
        await slow
        assert len(looks(holder, 4 * IDLE_S, 5 * IDLE_S)) == 1

    run(test)


def test_a_server_that_stops_gives_up_at_once_what_nobody_uses() -> None:
    async def test() -> None:
        holder, other = await begun()
        gate = Gate(holder)
        slow = asyncio.ensure_future(do.run(holder, file.DELETE_FILE, "f", OnPath()))
        await gate.reached.wait()
        leaving(holder).release_unused()
        assert await refused(do.look(other, "f")) == BUSY
        gate.open()
        await slow
        leaving(holder).release_unused()
        assert await refused(do.look(holder, "f")) == BUSY, "it takes no share any more"
        assert await refused(do.look(other, "f")) == (404, "ResourceNotFound")

    run(test)


def test_a_handle_and_a_mounted_share_keep_it() -> None:
    async def test() -> None:
        holder, _ = await begun()
        held: list[object] = []

        async def mount() -> None:
            held.append(await smb.mounted(holder))

        await in_task(mount())
        assert looks(holder, 0.0, IDLE_S, 2 * IDLE_S) == []
        held.clear()
        assert len(looks(holder, 3 * IDLE_S, 4 * IDLE_S)) == 1

    run(test)


async def removal(on: Services, name: str) -> tuple[Gate, asyncio.Task[None]]:
    """Begin a request that waits at a gate."""
    gate = Gate(on)
    slow = asyncio.ensure_future(do.run(on, file.DELETE_FILE, name, OnPath()))
    await gate.reached.wait()
    return gate, slow


def test_a_share_is_given_up_to_another_gateway_when_its_requests_have_ended() -> None:
    async def test() -> None:
        holder, other = await begun()
        holds = holder.held.of(ShareHolds)
        (share,) = holds._shares
        await in_task(do.write(holder, "g", b"second"))
        gate, slow = await removal(holder, "f")
        asked = asyncio.ensure_future(leaving(holder).give_up(share))
        await asyncio.sleep(0)
        await in_task(do.look(holder, "g"))  # new requests do not wait for an old one
        later_gate, later = await removal(holder, "g")
        gate.open()
        await slow
        await asyncio.sleep(0.1)  # it looks ten times meanwhile
        assert await refused(do.look(holder, "f")) == BUSY, "new requests wait elsewhere"
        assert await refused(do.look(other, "f")) == BUSY
        later_gate.open()
        await later
        assert await asked
        # For a while it is left to the gateway that has asked.
        assert await refused(do.look(holder, "f")) == BUSY
        assert await refused(do.look(other, "f")) == (404, "ResourceNotFound")
        looks(holder, asyncio.get_running_loop().time() + IDLE_S)
        assert not holds._withheld, "what is over is forgotten"

    run(test)


def test_a_request_that_takes_long_does_not_stop_others_when_the_share_is_asked_for() -> None:
    async def test() -> None:
        holder, _ = await begun()
        (share,) = holder.held.of(ShareHolds)._shares
        await in_task(do.write(holder, "g", b"second"))
        gate, slow = await removal(holder, "f")
        asked = asyncio.ensure_future(leaving(holder).give_up(share))
        while not asked.done():
            await in_task(do.look(holder, "g"))
            await asyncio.sleep(0.01)
        assert not asked.result()
        gate.open()
        await slow

    run(test)


def test_a_share_that_could_not_be_given_up_is_not_paused_again_soon() -> None:
    async def test() -> None:
        holder, _ = await begun()
        holds, leaves = holder.held.of(ShareHolds), leaving(holder)
        (share,) = holds._shares
        await in_task(do.write(holder, "g", b"second"))
        gate, slow = await removal(holder, "f")
        asked = asyncio.ensure_future(leaves.give_up(share))
        await asyncio.sleep(0)
        later_gate, later = await removal(holder, "g")
        gate.open()
        await slow
        assert not await asked, "the later one takes too long"
        later_gate.open()
        await later
        again = asyncio.ensure_future(leaves.give_up(share))
        await asyncio.sleep(0)
        assert again.done()
        assert not again.result()
        looks_at = asyncio.get_running_loop().time() + REFUSED_S
        assert leaves.release_idle(looks_at) == []
        assert await leaves.give_up(share)

    run(test)


def test_a_share_that_is_needed_is_not_given_up() -> None:
    async def test() -> None:
        holder, _ = await begun()
        (share,) = holder.held.of(ShareHolds)._shares
        held: list[object] = []

        async def mount() -> None:
            held.append(await smb.mounted(holder))

        await in_task(mount())
        asked = asyncio.ensure_future(leaving(holder).give_up(share))
        await asyncio.sleep(0)
        assert asked.done(), "no request waits for what cannot come"
        assert not asked.result()
        await in_task(do.look(holder, "f"))
        held.clear()
        gate = Gate(holder)
        slow = asyncio.ensure_future(do.run(holder, file.DELETE_FILE, "f", OnPath()))
        await gate.reached.wait()
        assert not await leaving(holder).give_up(share), "a request takes too long"
        gate.open()
        await slow

    run(test)
