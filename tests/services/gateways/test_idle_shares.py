"""A share that nobody uses is given up after a while, and never under what relies on it."""

from __future__ import annotations

import asyncio

from strongroom.operations.file import file
from strongroom.services.core.runner import Services
from strongroom.services.file.names.paths import OnPath
from strongroom.services.file.opens.opens import Opens
from strongroom.services.file.opens.share_holds import IDLE_S, ShareHolds
from tests.services import file_calls as do
from tests.services import handle_calls as smb
from tests.services.container_calls import refused, run
from tests.services.gateways.test_share_holds import BUSY, with_file
from tests.services.gateways.test_two_gateways import Gate


def looks(on: Services, *times_s: float) -> list[int]:
    """Look for idle shares at these times; return those that are given up at the last."""
    holds, opens = on.held.of(ShareHolds), on.held.of(Opens)
    found: list[int] = []
    for now_s in times_s:
        found = holds.release_idle(now_s, opens.has_opens_in)
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
        holds = holder.held.of(ShareHolds)
        for now_s in (0.0, IDLE_S, 2 * IDLE_S):
            assert holds.release_idle(now_s, lambda _: True) == []
        holds.release_unused(lambda _: True)
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
        holds, opens = holder.held.of(ShareHolds), holder.held.of(Opens)
        gate = Gate(holder)
        slow = asyncio.ensure_future(do.run(holder, file.DELETE_FILE, "f", OnPath()))
        await gate.reached.wait()
        holds.release_unused(opens.has_opens_in)
        assert await refused(do.look(other, "f")) == BUSY
        gate.open()
        await slow
        holds.release_unused(opens.has_opens_in)
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


def test_a_share_is_given_up_to_another_gateway_when_its_requests_have_ended() -> None:
    async def test() -> None:
        holder, other = await begun()
        holds, opens = holder.held.of(ShareHolds), holder.held.of(Opens)
        (share,) = holds._shares
        gate = Gate(holder)
        slow = asyncio.ensure_future(do.run(holder, file.DELETE_FILE, "f", OnPath()))
        await gate.reached.wait()
        asked = asyncio.ensure_future(holds.give_up(share, opens.has_opens_in))
        await asyncio.sleep(0)
        assert await refused(do.look(holder, "f")) == BUSY, "new requests wait elsewhere"
        assert await refused(do.look(other, "f")) == BUSY
        gate.open()
        await slow
        assert await asked
        # For a while it is left to the gateway that has asked.
        assert await refused(do.look(holder, "f")) == BUSY
        assert await refused(do.look(other, "f")) == (404, "ResourceNotFound")

    run(test)


def test_a_share_that_is_needed_is_not_given_up() -> None:
    async def test() -> None:
        holder, _ = await begun()
        holds, opens = holder.held.of(ShareHolds), holder.held.of(Opens)
        (share,) = holds._shares
        held: list[object] = []

        async def mount() -> None:
            held.append(await smb.mounted(holder))

        await in_task(mount())
        asked = asyncio.ensure_future(holds.give_up(share, opens.has_opens_in))
        await asyncio.sleep(0)
        assert asked.done(), "no request waits for what cannot come"
        assert not asked.result()
        await in_task(do.look(holder, "f"))
        held.clear()
        gate = Gate(holder)
        slow = asyncio.ensure_future(do.run(holder, file.DELETE_FILE, "f", OnPath()))
        await gate.reached.wait()
        assert not await holds.give_up(share, opens.has_opens_in), "a request takes too long"
        gate.open()
        await slow

    run(test)
