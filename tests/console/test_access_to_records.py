"""Whose records a viewer sees, and where it may act; nothing is told before that is decided."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strongroom.auth.bearer import Identity
from strongroom.auth.claims import BearerClaim, SharedKeyClaim
from strongroom.auth.roles import Assignment
from strongroom.console.access import Access
from strongroom.console.coordination_view import NotForViewer, Seen, Wanted
from strongroom.console.other_stores import OtherStorePanel
from strongroom.console.record_pages import PageOf
from strongroom.console.store_sources import StoreSource
from strongroom.testing import InProcessServer
from tests.console.world import ACCOUNT, World

READER, WRITER = "Storage Blob Data Reader", "Storage Blob Data Contributor"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    other = OtherStorePanel(StoreSource("jobs", "memory://jobs"), may_act=False)
    with InProcessServer.start() as server:
        world = World(server, other)
        for name in ("mine", "theirs"):
            with world.client(name) as client:
                client.gate("go").open()
        yield world
        world.view.close()


def bearer(world: World, *roles: tuple[str, str]) -> Access:
    assignments = tuple(Assignment("ann", role, ACCOUNT, place) for role, place in roles)
    return world.access(BearerClaim(ACCOUNT, Identity("ann"), assignments), is_operator=False)


def test_the_owner_sees_all_containers_and_may_act(world: World) -> None:
    found = {one.container: one.may_act for one in world.seen().containers}
    assert found == {"mine": True, "theirs": True}


def test_a_reader_of_one_container_sees_that_one(world: World) -> None:
    access = bearer(world, (READER, "mine"))
    seen = world.seen(access)
    assert [(one.container, one.may_act) for one in seen.containers] == [("mine", False)]
    assert seen.stores == () and not seen.has_more
    with pytest.raises(NotForViewer, match="read this container"):
        world.seen(access, Wanted("theirs", PageOf()))
    with pytest.raises(NotForViewer, match="read this container"):
        world.seen(access, Wanted("no-such-container", PageOf()))
    with pytest.raises(NotForViewer, match="write this container"):
        world.run(world.view.open_gate(access, Seen("mine", None, "go", None), None))
    with pytest.raises(NotForViewer, match="operator"):
        world.run(world.view.store(access, "jobs", PageOf()))
    with pytest.raises(NotForViewer, match="operator"):
        world.run(world.view.rearm_gate(access, Seen("mine", "no such store", "go", None)))


def test_a_writer_of_one_container_acts_there_only(world: World) -> None:
    access = bearer(world, (WRITER, "mine"))
    assert world.run(world.view.rearm_gate(access, Seen("mine", None, "go", None))).generation == 2
    with world.client("mine") as client:
        assert client.gate("go").show().who == "ann"
    with pytest.raises(NotForViewer):
        world.run(world.view.rearm_gate(access, Seen("theirs", None, "go", None)))


@pytest.mark.parametrize("role", ["Storage Queue Data Contributor", "Storage Blob Delegator"])
def test_another_role_shows_nothing(world: World, role: str) -> None:
    assert world.seen(bearer(world, (role, ""))).containers == ()


def test_an_account_that_is_not_served_has_nothing(world: World) -> None:
    with pytest.raises(NotForViewer, match="account"):
        world.seen(world.access(SharedKeyClaim("other")))


def test_a_store_without_acts_is_read_only(world: World) -> None:
    operator = world.access()
    assert [one.name for one in world.seen(operator).stores] == ["jobs"]
    assert world.run(world.view.store(operator, "jobs", PageOf())).records.gates == ()
    with pytest.raises(NotForViewer, match="coordination-acts"):
        world.run(world.view.open_gate(operator, Seen("", "jobs", "go", None), None))
