"""Signals reach a busy event loop."""

from __future__ import annotations

import asyncio
import os
import signal

from strongroom.cli.event_loop import run
from strongroom.platform.event_loops import forget_signal, on_signals

REPORTS = 5_000


def test_a_signal_is_heard_while_many_threads_report_results() -> None:
    heard = run(hear_one_among(REPORTS))
    assert heard
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_a_signal_wakes_a_loop_that_sleeps() -> None:
    assert run(hear_one_among(0))


async def hear_one_among(reports: int) -> bool:
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    on_signals(loop, (signal.SIGUSR1,), came.set)
    # As a thread does that has a result: each writes a byte to the socket that wakes the loop.
    for _ in range(reports):
        loop.call_soon_threadsafe(int)
    os.kill(os.getpid(), signal.SIGUSR1)
    try:
        async with asyncio.timeout(10):
            await came.wait()
    except TimeoutError:
        return False
    finally:
        forget_signal(loop, signal.SIGUSR1)
    return True
