"""How a process of this program is started and asked to stop.

Sources: kill(2); "GenerateConsoleCtrlEvent" of Windows, which reaches a process that was started in
a group of its own.
"""

from __future__ import annotations

import signal
import subprocess
from typing import Final

_CTRL_BREAK: Final[int | None] = getattr(signal, "CTRL_BREAK_EVENT", None)

CREATION_FLAGS: Final[int] = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
"""The creation flags of a process that `ask_to_stop` can reach."""


def ask_to_stop(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end in order: SIGTERM, or Ctrl+Break on Windows."""
    process.send_signal(signal.SIGTERM if _CTRL_BREAK is None else _CTRL_BREAK)
