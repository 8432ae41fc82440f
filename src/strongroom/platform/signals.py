"""The signals that end programs, by their purpose.

Must not live here: how they reach an event loop (event_loops.py). Commands import this at their
start, so it imports little. Source: signal(7); "Handler" of SetConsoleCtrlHandler in the
documentation of Windows.
"""

from __future__ import annotations

import signal
from typing import Final


def _named(*names: str) -> tuple[signal.Signals, ...]:
    found = (getattr(signal, name, None) for name in names)
    return tuple(one for one in found if isinstance(one, signal.Signals))


# Windows sends SIGBREAK for Ctrl+Break, and to a process that another one asks to stop.
STOP_SIGNALS: Final = _named("SIGTERM", "SIGINT", "SIGBREAK")
"""The signals that ask a server to stop."""
TERMINATING_SIGNALS: Final = _named("SIGTERM", "SIGHUP", "SIGBREAK")
"""The signals besides SIGINT that end a program."""
REOPENING_SIGNALS: Final = _named("SIGHUP")
"""The signals that ask a server to open its log files anew; empty on Windows."""
