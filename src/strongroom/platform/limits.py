"""How many files and sockets this process may have open.

Must not live here: how many connections a server takes for that
(servers/connections/open_files.py). Sources: getrlimit(2); "select" in the documentation of
Winsock, whose sets hold 512 sockets in Python.

    open_files_limits()                 (limit now, highest that may be set), each None if there is
                                        none; None if the system has no such limits
    set_open_files_limits(soft, hard)   raises OSError, ValueError
"""

from __future__ import annotations

from typing import Final

from strongroom.platform import IS_POSIX

if IS_POSIX:
    from strongroom.platform.posix import open_files_limits, set_open_files_limits
else:
    from strongroom.platform.windows.limits import open_files_limits, set_open_files_limits

__all__ = ["SOCKETS_MAX", "open_files_limits", "set_open_files_limits"]

SOCKETS_MAX: Final[int | None] = None if IS_POSIX else 512
"""How many sockets an event loop of event_loops.py can wait for; None if open files limit them."""
