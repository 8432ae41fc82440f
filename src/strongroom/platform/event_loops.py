"""Event loops, and the signals that reach them.

The choice: on every system the loop waits with a selector, also on Windows, where Python's own
choice is another one (the proactor). So the same code accepts connections, reads and writes
everywhere, and what is tried on one system holds on the others. On Windows a selector waits for 512
sockets at most (SOCKETS_MAX in limits.py). Sources: the Python documentation, "Platform Support" of
asyncio and "signal: set_wakeup_fd".
"""

from __future__ import annotations

import asyncio
import signal
import socket
import weakref
from collections.abc import Callable, Iterable
from typing import Final

from strongroom.platform import IS_POSIX


def new_event_loop() -> asyncio.AbstractEventLoop:
    if IS_POSIX:
        return asyncio.new_event_loop()
    return asyncio.SelectorEventLoop()


def on_signals(
    loop: asyncio.AbstractEventLoop, signals: Iterable[signal.Signals], act: Callable[[], None]
) -> None:
    """Call `act` on the loop when one of the signals comes, however busy the loop is.

    asyncio learns from a socket which signal came. Threads that report results write there too, and
    when some 280 reports wait, the signal is lost. So a handler passes it on as well.

    Arguments:
        act: is called once or twice for one signal, so it must be idempotent. It may call
            `forget_signal`.
    """

    def pass_on(number: int, frame: object) -> None:
        loop.call_soon_threadsafe(act)

    for number in signals:
        try:
            # asyncio's handler wakes the loop if a signal comes just before the loop sleeps.
            loop.add_signal_handler(number, act)
        except NotImplementedError:
            if loop not in _wakers:
                _wakers[loop] = _Waker(loop)
            _wakers[loop].signals.add(number)
        signal.signal(number, pass_on)
    # A full socket wakes the loop as well, so it is no reason for a traceback.
    signal.set_wakeup_fd(signal.set_wakeup_fd(-1), warn_on_full_buffer=False)


def forget_signal(loop: asyncio.AbstractEventLoop, number: signal.Signals) -> None:
    """Let a signal have its default effect again."""
    try:
        loop.remove_signal_handler(number)
    except NotImplementedError:
        is_interrupt = number == signal.SIGINT
        signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
        waker = _wakers.get(loop)
        if waker is not None:
            waker.forget(loop, number)


class _Waker:
    """A socket to which every signal writes, and which a loop reads: so a sleeping loop wakes.

    It exists while one of its signals is awaited.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.signals: set[signal.Signals] = set()
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)
        loop.add_reader(self._receiver, self._drain)
        signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)

    def forget(self, loop: asyncio.AbstractEventLoop, number: signal.Signals) -> None:
        """End with the last signal."""
        self.signals.discard(number)
        if not self.signals:
            signal.set_wakeup_fd(-1)
            loop.remove_reader(self._receiver)
            self._receiver.close()
            self._sender.close()
            del _wakers[loop]

    def _drain(self) -> None:
        try:
            while self._receiver.recv(4096):
                pass
        except BlockingIOError:
            return


_wakers: Final[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Waker]] = (
    weakref.WeakKeyDictionary()
)
