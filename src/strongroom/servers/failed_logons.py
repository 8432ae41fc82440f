"""The log lines of failed logons, over REST and SMB: whose account, and from which address.

Lives here: the line, and how many there are of it. Must not live here: who may log on (auth/). A
line has no signature, token or key. A client chooses the account's name, so only names that an
account can have are shown.
"""

from __future__ import annotations

import logging
import re
from typing import Final

from strongroom.servers.rationed_log import Ration, more

_log = logging.getLogger("strongroom.logons")

_NAME: Final = re.compile(r"[a-z0-9]{3,24}")
_EVERY_S: Final = 60.0
# Clients of ever new addresses and names cause no more lines than this in each interval.
LINES_MAX: Final = 60
_LEFT_OUT: Final = (
    "logon failed: more than %d accounts and addresses within a minute; the lines of others are "
    "left out until it is over"
)


class FailedLogons:
    """Writes one line a minute for each account and address, and LINES_MAX in all.

    One more line says that others are left out: noise must not hide silently who else tries.
    Used on the event loop.
    """

    def __init__(self) -> None:
        self._ration = Ration(_EVERY_S)
        self._began = float("-inf")
        self._lines = 0

    def note(self, how: str, account: str, address: str, now: float) -> None:
        """`how` is the protocol, and what was refused. `account` is what the client gave, of any
        form. `now` is in seconds of a monotonic clock."""
        name = account if _NAME.fullmatch(account) else ""
        left_out = self._ration.left_out((how, name, address), now)
        if left_out is None:
            return
        if now - self._began >= _EVERY_S:
            self._began, self._lines = now, 0
        self._lines += 1
        if self._lines > LINES_MAX:
            if self._lines == LINES_MAX + 1:
                _log.warning(_LEFT_OUT, LINES_MAX)
            return
        shown = f"account {name}" if name else "a name that no account has"
        _log.warning("logon failed: %s, %s, from %s%s", how, shown, address, more(left_out))
