"""Refusals that depend on the bytes of a message alone, and their NT statuses (statuses.py).

Besides MalformedMessage, codecs raise only this exception. Sources: [MS-ERREF] section 2.3.1;
[MS-FSA] sections 2.1.5.6 and 2.1.5.12.
"""

from __future__ import annotations


class SmbRefusal(Exception):
    """A well-formed message requests something that its codec refuses.

    Arguments:
        status: the NTSTATUS of the response.
        data: the ErrorData of the response.
    """

    def __init__(self, status: int, data: bytes = b"") -> None:
        super().__init__(f"NTSTATUS {status:#010x}")
        self.status = status
        self.data = data
