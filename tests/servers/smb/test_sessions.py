"""Sessions, tree connects and opens: found by their ids, limited, and ended once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from strongroom.semantics.file.durability import DisconnectReason
from strongroom.servers.smb.refusals import SmbError
from strongroom.servers.smb.state import sessions
from strongroom.servers.smb.state.declarations import Needs, SmbAnswer
from strongroom.servers.smb.state.sessions import SmbSession
from strongroom.wire.smb.header import ALL_ONES, FileId
from strongroom.wire.smb.statuses import (
    STATUS_FILE_CLOSED,
    STATUS_INSUFFICIENT_RESOURCES,
    STATUS_SUCCESS,
)


class _Target:
    """A target that waits for its client, or ends once `may_end` is set."""

    path = ("file",)

    def __init__(self, *, waits: bool = False, may_end: asyncio.Event | None = None) -> None:
        self.reasons: list[DisconnectReason] = []
        self.is_ended = False
        self._waits = waits
        self._may_end = may_end

    def begin_wait(self, reason: DisconnectReason) -> bool:
        self.reasons.append(reason)
        return self._waits

    async def end(self) -> None:
        await (asyncio.sleep(0) if self._may_end is None else self._may_end.wait())
        self.is_ended = True


def _session(ids: Iterator[int] | None = None) -> SmbSession:
    numbers = iter(range(1, 100_000)) if ids is None else ids
    return SmbSession(7, lambda: next(numbers))


def test_an_open_is_found_by_both_halves_of_its_id() -> None:
    session = _session()
    tree = session.add_tree("share", object())
    found = session.add_open(tree, _Target(), 500)
    assert session.find_open(found.file_id) is found
    for wrong in (FileId(501, found.file_id.volatile), FileId(500, found.file_id.volatile + 1)):
        with pytest.raises(SmbError) as refused:
            session.find_open(wrong)
        assert refused.value.status == STATUS_FILE_CLOSED


def test_no_id_is_zero_all_ones_or_in_use() -> None:
    session = _session(iter([0, ALL_ONES, 5, 5, 6]))
    tree = session.add_tree("share", object())
    assert session.add_open(tree, _Target(), 1).file_id.volatile == 5
    assert session.add_open(tree, _Target(), 2).file_id.volatile == 6


def test_of_two_that_remove_an_open_one_succeeds() -> None:
    session = _session()
    found = session.add_open(session.add_tree("share", object()), _Target(), 1)
    assert session.remove_open(found)
    assert not session.remove_open(found)


def test_a_tree_ends_with_its_own_opens_only() -> None:
    session = _session()
    first, second = session.add_tree("a", object()), session.add_tree("b", None)
    assert (first.id, second.id) == (1, 2)
    assert second.has_pipes and not first.has_pipes
    ended, left = _Target(), _Target()
    session.add_open(first, ended, 1)
    kept = session.add_open(second, left, 2)
    asyncio.run(session.end_tree(first))
    assert ended.reasons == [DisconnectReason.TREE_DISCONNECTED]
    assert left.reasons == []
    assert list(session.trees) == [2]
    assert session.find_open(kept.file_id) is kept


def test_a_session_ends_all_and_each_only_once() -> None:
    async def both() -> None:
        await asyncio.gather(
            session.end(DisconnectReason.LOGGED_OFF), session.end(DisconnectReason.DISCONNECTED)
        )

    session = _session()
    targets = [_Target() for _ in range(3)]
    for number, target in enumerate(targets):
        session.add_open(session.add_tree(str(number), object()), target, number)
    asyncio.run(both())
    assert [target.reasons for target in targets] == [[DisconnectReason.LOGGED_OFF]] * 3
    assert not session.trees and not session.opens


def test_what_waits_for_its_client_does_so_before_the_first_is_closed() -> None:
    """The client may reconnect at once, while another target is still being closed."""

    async def scenario() -> None:
        may_end = asyncio.Event()
        slow, durable = _Target(may_end=may_end), _Target(waits=True)
        session = _session()
        for target in (slow, durable):
            session.add_open(session.add_tree("a", object()), target, 1)
        ending = asyncio.ensure_future(session.end(DisconnectReason.DISCONNECTED))
        await asyncio.sleep(0)
        assert durable.reasons == [DisconnectReason.DISCONNECTED]
        assert not ending.done()
        assert [one.is_ended for one in (slow, durable)] == [False, False]
        may_end.set()
        await ending
        assert [one.is_ended for one in (slow, durable)] == [True, False]

    asyncio.run(scenario())


def test_all_opens_end_although_the_request_that_ends_them_is_cancelled() -> None:
    async def scenario() -> None:
        may_end = asyncio.Event()
        targets = [_Target(may_end=may_end), _Target()]
        session = _session()
        for target in targets:
            session.add_open(session.add_tree("a", object()), target, 1)
        ending = asyncio.ensure_future(session.end(DisconnectReason.LOGGED_OFF))
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.gather(ending, return_exceptions=True)
        may_end.set()
        for _ in range(20):
            await asyncio.sleep(0)
        assert [target.is_ended for target in targets] == [True, True]

    asyncio.run(scenario())


def test_trees_and_opens_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "TREES_MAX", 2)
    monkeypatch.setattr(sessions, "OPENS_MAX", 2)
    session = _session()
    trees = [session.add_tree("share", object()) for _ in range(2)]
    for number in range(2):
        session.add_open(trees[0], _Target(), number)
    with pytest.raises(SmbError) as refused:
        session.add_tree("share", object())
    assert refused.value.status == STATUS_INSUFFICIENT_RESOURCES
    with pytest.raises(SmbError) as refused:
        session.add_open(trees[0], _Target(), 9)
    assert refused.value.status == STATUS_INSUFFICIENT_RESOURCES


def test_a_tree_id_is_used_again_only_when_it_is_free() -> None:
    session = _session()
    first = session.add_tree("a", object())
    session._last_tree_id = 0xFFFF_FFFE  # the next one wraps round to 1, which is taken
    second = session.add_tree("b", object())
    assert (first.id, second.id) == (1, 2)


def test_an_answer_succeeds_unless_it_says_otherwise() -> None:
    assert SmbAnswer(b"").status == STATUS_SUCCESS
    assert Needs.SESSION < Needs.TREE < Needs.OPEN
