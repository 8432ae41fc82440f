"""How a command of SMB is refused.

Lives here: the exceptions that a command's handler raises beside StorageError and
MalformedMessage. Must not live here: the body of the answer. Source:
[MS-SMB2] section 2.2.2; smb.md 1.2.
"""

from __future__ import annotations


class SmbError(Exception):
    """A refusal that the client is answered.

    Arguments:
        status: the NTSTATUS.
        data: what the error response carries beside it: the needed size of BUFFER_TOO_SMALL.
    """

    def __init__(self, status: int, data: bytes = b"") -> None:
        super().__init__(f"NTSTATUS 0x{status:08X}")
        self.status = status
        self.data = data


class CloseConnection(Exception):
    """The client broke a rule to which the answer is the end of its connection.

    Its text says which, for the log.
    """
