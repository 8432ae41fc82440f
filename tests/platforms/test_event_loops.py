"""A signal wakes a sleeping loop also where asyncio takes no signals, as on Windows."""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest

from strongroom.cli.event_loop import run
from strongroom.platform.event_loops import forget_signal, on_signals


def _refuse(*arguments: object) -> None:
    raise NotImplementedError


def _strike_elsewhere() -> None:
    """Send the signal to this thread, so that no call of the main thread is interrupted by it.

    On Windows, no signal interrupts any call.
    """
    signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)


async def _hears_one() -> bool:
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    on_signals(loop, (signal.SIGUSR1, signal.SIGUSR2), came.set)
    threading.Timer(0.05, _strike_elsewhere).start()
    try:
        async with asyncio.timeout(10):
            await came.wait()
    except TimeoutError:
        return False
    finally:
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            forget_signal(loop, number)
    return True


@pytest.mark.parametrize("takes_signals", [True, False])
def test_a_signal_wakes_a_sleeping_loop(
    takes_signals: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not takes_signals:
        for name in ("add_signal_handler", "remove_signal_handler"):
            monkeypatch.setattr(asyncio.SelectorEventLoop, name, _refuse)
    assert run(_hears_one())
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
    assert signal.set_wakeup_fd(-1) == -1, "signals would write to whatever is opened next"
