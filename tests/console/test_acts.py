"""Acts from the console: they do what was meant, and only to what was seen."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from strongroom.console.coordination_view import Seen
from strongroom.console.other_stores import OtherStorePanel
from strongroom.console.record_pages import PageOf
from strongroom.console.store_sources import StoreSource
from strongroom.coordination import LockLost, connect
from strongroom.coordination.errors import ChangedSince
from strongroom.servers.console.api.coordination import BreakAct, Kind, ShownHold
from strongroom.testing import InProcessServer
from tests.console.world import ACCOUNT, World

HOSTILE = ["<img src=x onerror=alert(1)>", "a/b", "../up", "ä %41\u2028", ".hidden", "a?b#c&d=e"]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    other = OtherStorePanel(StoreSource("jobs", "memory://acts-of-jobs"), may_act=True)
    with InProcessServer.start() as server:
        world = World(server, other)
        yield world
        world.view.close()


def held_of(world: World, kind: str, name: str) -> ShownHold:
    found = [one for part in world.seen().containers for one in part.records.held]
    (held,) = [one for one in found if (one.kind, one.name) == (kind, name)]
    return held


@pytest.mark.parametrize("name", HOSTILE)
def test_a_gate_is_opened_and_rearmed_by_its_name(world: World, name: str) -> None:
    access = world.access()
    seen = Seen("locks", None, name, "1")
    assert world.run(world.view.open_gate(access, seen, {"n": 1})).is_open
    with world.client() as client:
        view = client.gate(name).show()
        assert (view.is_open, view.payload, view.who) == (True, {"n": 1}, "ann")
        act = world.run(world.view.rearm_gate(access, seen))
        assert (act.generation, act.is_open, act.state) == (2, False, "2")
        assert not client.gate(name).show().is_open
        with pytest.raises(ChangedSince):
            world.run(world.view.open_gate(access, seen, None))
        assert client.gate(name).show().generation == 2


@pytest.mark.parametrize("mode", ["etag", "lease"])
@pytest.mark.parametrize("kind", ["lock", "election"])
def test_a_hold_is_broken_in_either_mode_of_the_container(
    world: World, mode: str, kind: Kind
) -> None:
    endpoint = quote(f"{world.server.url}/{ACCOUNT}", safe="")
    url = f"azure://{ACCOUNT}/modes-{mode}?endpoint={endpoint}&mode={mode}"
    name = f"{kind}-{mode}"
    with connect(url, label="holder") as client:
        of_kind = client.lock(name, ttl=60) if kind == "lock" else None
        held = of_kind.acquire() if of_kind else client.election(name, ttl=60).campaign()
        seen = held_of(world, kind, name)
        assert [one.who for one in seen.holders] == ["holder"]
        act = Seen(f"modes-{mode}", None, name, seen.state)
        assert world.run(world.view.break_hold(world.access(), act, kind)).broken == ("holder",)
        after = held_of(world, kind, name)
        assert after.holders == () and "broken by ann" in after.end
        assert int(after.fence) == int(seen.fence) + 1
        with (
            client.sibling("next").lock(name)
            if of_kind
            else client.sibling().election(name).lead() as again
        ):
            assert again.fence > held.fence
        with pytest.raises(ChangedSince):
            world.run(world.view.break_hold(world.access(), act, kind))


def test_a_break_spares_the_next_holder(world: World) -> None:
    with world.client("races", "first") as client:
        with client.lock("a"):
            seen = held_of(world, "lock", "a")
        with client.sibling("second").lock("a") as second:
            act = Seen("races", None, "a", seen.state)
            with pytest.raises(ChangedSince):
                world.run(world.view.break_hold(world.access(), act, "lock"))
            second.check()
            unconditional = act._replace(state=None)
            assert world.run(
                world.view.break_hold(world.access(), unconditional, "lock")
            ).broken == ("second",)


@pytest.mark.parametrize("state", ["-1", "x", "", "9" * 20, "²"])
def test_a_state_that_never_was_changes_nothing(world: World, state: str) -> None:
    seen = Seen("locks", None, "never", state)
    for act in (
        world.view.open_gate(world.access(), seen, None),
        world.view.break_hold(world.access(), seen, "semaphore"),
        world.view.break_hold(world.access(), seen, "lock"),
    ):
        try:
            outcome = world.run(act)
        except ChangedSince:
            continue
        assert outcome == BreakAct(())
    with world.client() as client:
        assert not client.gate("never").show().is_open


def test_all_permits_of_a_semaphore_are_ended(world: World) -> None:
    with world.client("permits", "one") as client:
        client.semaphore("gpu", 2, 60).acquire()
        client.sibling("two").semaphore("gpu", 2, 60).acquire()
        seen = held_of(world, "semaphore", "gpu")
        act = Seen("permits", None, "gpu", seen.state)
        broken = world.run(world.view.break_hold(world.access(), act, "semaphore")).broken
        assert broken == ("one", "two") and held_of(world, "semaphore", "gpu").holders == ()


def test_another_store_is_acted_on_if_the_operator_allows_it(world: World) -> None:
    operator = world.access()
    with connect("memory://acts-of-jobs", label="holder") as client:
        held = client.lock("nightly", alert=True).acquire()
        records = world.run(world.view.store(operator, "jobs", PageOf())).records
        (seen,) = records.held
        act = Seen("", "jobs", "nightly", seen.state)
        assert world.run(world.view.break_hold(operator, act, "lock")).broken == ("holder",)
        assert held.lost.wait(20)
        with pytest.raises(LockLost):
            held.check()
        assert world.run(world.view.store(operator, "jobs", PageOf())).records.held[0].holders == ()
