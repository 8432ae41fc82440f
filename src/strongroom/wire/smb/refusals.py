"""Refusals that follow from the bytes of a message alone, and their NT statuses.

Lives here: the one exception that codecs raise beside MalformedMessage. Must not live here: the
statuses (statuses.py). Sources: [MS-ERREF] section 2.3.1; [MS-FSA] sections 2.1.5.6 and 2.1.5.12.
"""

from __future__ import annotations


class SmbRefusal(Exception):
    """A well-formed message asks for what its codec knows to be refused.

    Arguments:
        status: the NTSTATUS of the answer.
        data: the ErrorData of the answer.
    """

    def __init__(self, status: int, data: bytes = b"") -> None:
        super().__init__(f"NTSTATUS {status:#010x}")
        self.status = status
        self.data = data
