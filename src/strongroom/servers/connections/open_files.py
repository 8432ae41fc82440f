"""The limit of open files of this process, and the number of connections that it allows.

Lives here: how many files a server needs. Must not live here: counting of connections (http/), the
system's calls (platform/limits.py). A server without free descriptors cannot open its own files.
The number of connections is therefore limited, since any client can open them.
"""

from __future__ import annotations

from typing import Final

from strongroom.platform.limits import SOCKETS_MAX, open_files_limits, set_open_files_limits
from strongroom.servers.connections.settings import AcceptSettings

# Files of segments and records, their readers, the sources of copies, refused connections.
_OWN_FILES: Final = 256
# Listeners, copies from other servers, refused connections, the loop's own.
_OWN_SOCKETS: Final = 112
# A connection is a socket, and an upload of a large body writes to a file of its own.
_FILES_PER_CONNECTION: Final = 2
_CONNECTIONS_MIN: Final = 16
# The server's own files, some 25, and sixteen uploads at once with a file of their own each.
FILES_MIN: Final = 128
_FILES_NEEDED: Final = _OWN_FILES + _FILES_PER_CONNECTION * AcceptSettings().connections_max


def raise_limit() -> None:
    """Raise the limit of open files to what the server may need, as far as the system allows."""
    soft, hard = open_files_limits() or (None, None)
    wanted = _FILES_NEEDED if hard is None else min(_FILES_NEEDED, hard)
    if soft is not None and soft < wanted:
        try:
            set_open_files_limits(wanted, hard)
        except (OSError, ValueError):  # some systems allow less than they say
            return


class TooFewOpenFiles(Exception):
    """The limit of open files is too low to serve; the text says what to do."""


def check_limit() -> None:
    """Refuse to serve with so few files that the first clients would use them up. Call it after
    `raise_limit`. Raises TooFewOpenFiles."""
    soft, _ = open_files_limits() or (None, None)
    if soft is not None and soft < FILES_MIN:
        raise TooFewOpenFiles(
            f"this process may open {soft} files, and a server needs {FILES_MIN} at least: raise "
            "the limit (ulimit -n 1024, LimitNOFILE=1024 in systemd), then start again"
        )


def connections_max() -> int:
    """Return how many connections may be open at once under the current limit."""
    soft, _ = open_files_limits() or (None, None)
    return connections_for(soft, SOCKETS_MAX)


def connections_for(files: int | None, sockets: int | None = None) -> int:
    """Return how many connections the server may take if it may open `files` files, and wait for
    `sockets` sockets. None means no such limit."""
    most = AcceptSettings().connections_max
    if sockets is not None:
        most = min(most, sockets - _OWN_SOCKETS)
    if files is None:
        return most
    return max(_CONNECTIONS_MIN, min(most, (files - _OWN_FILES) // _FILES_PER_CONNECTION))
