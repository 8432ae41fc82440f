"""The counts of SMB, and the log line of each request.

Lives here: the counts as plain numbers, and the line. Must not live here: their form as metrics
(servers/telemetry.py). No secret gets here: neither tokens nor keys are read.
"""

from __future__ import annotations

import logging

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
        self.received_bytes = 0
        self.sent_bytes = 0

    def answered(self, peer: str, header: Header, status: int, seconds: float) -> None:
        """Count one request, and write its line at log level debug."""
        name = name_of(header.command)
        key = (name, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        if _log.isEnabledFor(logging.DEBUG):
            ids = f"message={header.message_id} session={header.session_id:016x}"
            outcome = f"tree={header.tree_id} status=0x{status:08X} ms={seconds * 1000:.3f}"
            _log.debug("%s %s %s %s", peer, name, ids, outcome)
