"""A connection's deadline, the bytes that must move before it, and the limits of a lingering
close."""

from __future__ import annotations

import asyncio
import math
from typing import cast

import pytest

from strongroom.errors.core import REQUEST_TIMEOUT, StorageError
from strongroom.servers.http.body import IncomingBody
from strongroom.servers.http.buffers import Share
from strongroom.servers.http.pacing import Pacing
from strongroom.servers.http.send import Sender
from strongroom.servers.http.settings import HttpSettings

SETTINGS = HttpSettings(
    linger_timeout_s=30.0, linger_idle_timeout_s=2.0, linger_bytes_max=10, stall_bytes_min=100
)


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_comes_puts_the_end_off_but_not_for_ever() -> None:
    time = Time()
    pacing = Pacing(SETTINGS, time)
    pacing.linger()
    deadlines = [pacing.deadline]
    for time.now in (110.0, 129.0):
        assert pacing.count_discarded(1)
        deadlines.append(pacing.deadline)
    assert deadlines == [102.0, 112.0, 130.0]


def test_so_many_bytes_may_come_and_no_more() -> None:
    pacing = Pacing(SETTINGS, Time())
    pacing.linger()
    assert [pacing.count_discarded(size_bytes) for size_bytes in (4, 6, 1)] == [True, True, False]


class Asking:
    """A feed that permits all calls of a body."""

    is_held_back = False

    def body_wanted(self) -> None: ...
    def pause_body(self) -> None: ...
    def resume_body(self) -> None: ...


def _stalled(reads: bool, moved_bytes: int) -> tuple[bool, float]:
    """Return whether a body fails at its deadline, and its next deadline.

    Arguments:
        reads: whether the handler waits for bytes at the deadline.
        moved_bytes: the bytes that arrived since the handler first waited.
    """

    async def scenario() -> tuple[bool, float]:
        time = Time()
        pacing = Pacing(SETTINGS, time)
        body = IncomingBody(10_000, Asking(), Share(10_000, 1000))
        body.receive(bytes(1000))
        pacing.watch_body(body)
        time.now += SETTINGS.body_stall_timeout_s / 2
        pacing.watch_body(body)  # it is watched already
        assert pacing.deadline == 130.0
        await body.__anext__()
        if moved_bytes:
            body.receive(bytes(moved_bytes))
            await body.__anext__()
        reading = asyncio.create_task(body.__anext__()) if reads else None
        await asyncio.sleep(0)
        time.now = 130.0
        pacing.check_body(body, StorageError(REQUEST_TIMEOUT))
        failed = body.left_bytes is None
        if reading is not None and failed:
            with pytest.raises(StorageError):
                await reading
        elif reading is not None:
            reading.cancel()
        return failed, pacing.deadline

    return asyncio.run(scenario())


def test_a_body_that_comes_too_slowly_fails_while_it_is_waited_for() -> None:
    assert _stalled(True, 99) == (True, math.inf)
    assert _stalled(True, 0) == (True, math.inf)
    assert _stalled(True, 100) == (False, 160.0)
    assert _stalled(False, 0) == (False, 160.0)


class Writing:
    """The writing side of a connection."""

    in_kernel = False

    def __init__(self) -> None:
        self.flushed = 1000
        self.congested = True

    def flushed_bytes(self) -> int:
        return self.flushed


@pytest.mark.parametrize("is_blocked", [False, True])
@pytest.mark.parametrize("moved_bytes", [0, 99, 100])
def test_an_answer_that_is_read_too_slowly_is_given_up(is_blocked: bool, moved_bytes: int) -> None:
    time, sender, given_up = Time(), Writing(), list[str]()
    pacing = Pacing(SETTINGS, time)
    pacing.watch_writing(cast(Sender, sender))
    assert pacing.deadline == 160.0
    time.now, sender.flushed, sender.congested = 160.0, 1000 + moved_bytes, is_blocked
    pacing.check_writing(cast(Sender, sender), lambda: given_up.append("given up"))
    assert bool(given_up) == (is_blocked and moved_bytes < 100)
    assert pacing.deadline == 220.0
