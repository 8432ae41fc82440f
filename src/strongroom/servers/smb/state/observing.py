"""The counts of SMB, and the log line of each request.

Lives here: the counts as plain numbers, and the line. Must not live here: their form as metrics
(servers/telemetry.py). No secret gets here: neither tokens nor keys are read.
"""

from __future__ import annotations

import logging

from strongroom.servers.failed_logons import FailedLogons
from strongroom.wire.smb.commands import name_of
from strongroom.wire.smb.header import Header

REQUEST_LOG = "strongroom.smb.requests"
_log = logging.getLogger(REQUEST_LOG)


class SmbCounts:
    """Counts of a listener.

    Attributes:
        requests: how many were answered, by command and status.
        breaks: how many break notifications were sent.
        logon_failures: how many authentications failed.
        received_bytes, sent_bytes: of frames, without their lengths.
    """

    def __init__(self) -> None:
        self.requests: dict[tuple[str, int], int] = {}
        self.breaks = 0
        self.logon_failures = 0
        self._failed_logons = FailedLogons()
        self.received_bytes = 0
        self.sent_bytes = 0

    def logon_failed(self, account: str, address: str, now: float) -> None:
        """`account` is the name that the client gave, "" if it gave none. `now` is in seconds of a
        monotonic clock."""
        self.logon_failures += 1
        self._failed_logons.note("SMB", account, address, now)

    def answered(self, peer: str, header: Header, status: int, seconds: float) -> None:
        """Count one request, and write its line at log level debug."""
        name = name_of(header.command)
        key = (name, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        if _log.isEnabledFor(logging.DEBUG):
            facts: dict[str, str | int | float] = {
                "peer": peer,
                "command": name,
                "message_id": header.message_id,
                "session": f"{header.session_id:016x}",
                "tree": header.tree_id,
                "status": f"0x{status:08X}",
                "ms": round(seconds * 1000, 3),
            }
            _log.debug("SMB request", extra={"facts": facts})
