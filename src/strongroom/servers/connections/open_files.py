"""The limit of open files of this process, and the number of connections that it allows.

Lives here: the two calls around RLIMIT_NOFILE. Must not live here: counting of connections (http/).
Source: getrlimit(2). A server without free descriptors cannot open its own files. The number of
connections is therefore limited, since any client can open them.
"""

from __future__ import annotations

import resource
from typing import Final

from strongroom.servers.connections.settings import AcceptSettings

# Files of segments and records, their readers, the sources of copies, refused connections.
_OWN_FILES: Final = 256
# A connection is a socket, and an upload of a large body writes to a file of its own.
_FILES_PER_CONNECTION: Final = 2
_CONNECTIONS_MIN: Final = 16
# The server's own files, some 25, and sixteen uploads at once with a file of their own each.
FILES_MIN: Final = 128
_FILES_NEEDED: Final = _OWN_FILES + _FILES_PER_CONNECTION * AcceptSettings().connections_max


def raise_limit() -> None:
    """Raise the limit of open files to what the server may need, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES_NEEDED if hard == resource.RLIM_INFINITY else min(_FILES_NEEDED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # some systems allow less than they say
            return


class TooFewOpenFiles(Exception):
    """The limit of open files is too low to serve; the text says what to do."""


def check_limit() -> None:
    """Refuse to serve with so few files that the first clients would use them up. Call it after
    `raise_limit`. Raises TooFewOpenFiles."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FILES_MIN:
        raise TooFewOpenFiles(
            f"this process may open {soft} files, and a server needs {FILES_MIN} at least: raise "
            "the limit (ulimit -n 1024, LimitNOFILE=1024 in systemd), then start again"
        )


def connections_max() -> int:
    """Return how many connections may be open at once under the current limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connections_for(None if soft == resource.RLIM_INFINITY else soft)


def connections_for(files: int | None) -> int:
    """Return how many connections the server may take if it may open `files` files. None means no
    limit of files."""
    most = AcceptSettings().connections_max
    if files is None:
        return most
    return max(_CONNECTIONS_MIN, min(most, (files - _OWN_FILES) // _FILES_PER_CONNECTION))
