"""The exceptions by which a command of SMB is refused.

Lives here: the exceptions that a command's handler raises beside StorageError and MalformedMessage.
Source: [MS-SMB2] section 2.2.2; smb.md 1.2.
"""

from __future__ import annotations

from strongroom.wire.smb.refusals import SmbRefusal

SmbError = SmbRefusal
"""A refusal with the status that the client gets. Codecs raise the same exception."""


class CloseConnection(Exception):
    """The client broke a rule, and its connection is closed without an answer.

    The text names the rule, for the log.
    """
