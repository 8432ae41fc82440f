"""The names of a share's snapshots in SMB: `@GMT-` tokens, which have a resolution of one second.

Which snapshots exist: services/file/shares. Sources: [MS-SMB] section 2.2.1.1.1; [MS-SMB2] sections
2.2.32.2 and 3.3.5.9.4; smb.md 2.4 and 2.7.

A snapshot is identified by its stamp, in ticks of 100 ns. A token has whole seconds, so two
snapshots of one second would have the same token. The older one keeps it, and the younger one gets
the next free second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.values import TICKS_PER_S, datetime_of, ticks_of

_FORMAT: Final = "@GMT-%Y.%m.%d-%H.%M.%S"
# strptime alone would accept fewer digits.
_TOKEN: Final = re.compile(r"@GMT(-[0-9]{4}(\.[0-9]{2}){2})-[0-9]{2}(\.[0-9]{2}){2}")


def token(ticks: int) -> str:
    """Cut to whole seconds."""
    return datetime_of(ticks).strftime(_FORMAT)


def time_of_token(name: str) -> int | None:
    """The time that a component of a path names, in ticks; None = it is a plain name."""
    if _TOKEN.fullmatch(name) is None:
        return None
    try:
        return ticks_of(datetime.strptime(name, _FORMAT).replace(tzinfo=UTC))
    except ValueError:
        return None


def seconds_of(stamps: Iterable[int]) -> dict[int, int]:
    """The stamp of each snapshot, by the whole second (in ticks) that its token names.

    Arguments:
        stamps: of a share's snapshots, rising.
    """
    by_second: dict[int, int] = {}
    last = -TICKS_PER_S
    for stamp in stamps:
        last = max(stamp - stamp % TICKS_PER_S, last + TICKS_PER_S)
        by_second[last] = stamp
    return by_second


def tokens(stamps: Sequence[int]) -> list[str]:
    """The tokens of a share's snapshots, newest first. No two are the same. `stamps` rise."""
    return [token(second) for second in reversed(seconds_of(stamps))]


def snapshot_at(stamps: Sequence[int], ticks: int) -> int | None:
    """The stamp of the snapshot that a time names; None = there is none of that time.

    A time of whole seconds is that of a token. Any other must be the stamp itself. `stamps` rise.
    """
    if ticks % TICKS_PER_S == 0:
        return seconds_of(stamps).get(ticks)
    return ticks if ticks in stamps else None


def without_token(path: Sequence[str]) -> tuple[tuple[str, ...], int | None]:
    """A path without its token, and the time that the token names; None = there is no token. The
    token may be any component; more than one is refused."""
    times = [time for name in path if (time := time_of_token(name)) is not None]
    if len(times) > 1:
        raise StorageError(file_errors.INVALID_FILE_NAME)
    if not times:
        return tuple(path), None
    return tuple(name for name in path if time_of_token(name) is None), times[0]
