"""The warning about clients whose dialects are too old to be served.

Lives here: the line, and which addresses it was written for. Must not live here: the refusal itself
(setup_commands.py, intake.py). The address and the offer are all that a line contains.
"""

from __future__ import annotations

import logging
from typing import Final

_log: Final = logging.getLogger(__name__)
ADDRESSES_MAX: Final = 1024
_NAMES: Final = {None: "SMB 1", 0x0202: "SMB 2.0.2", 0x0210: "SMB 2.1"}
_SMB_210: Final = 0x0210


class OldClients:
    """The addresses of clients that were refused for their dialects.

    Each address gets one line. After 1,024 addresses no more lines are written, so that a log never
    fills up with them.
    """

    def __init__(self, *, requires_encryption: bool) -> None:
        self._least = "SMB 3.0" if requires_encryption else "SMB 2.1"
        self._requires_encryption = requires_encryption
        self._warned: set[str] = set()

    def refused(self, address: str, dialect: int | None) -> None:
        """Write the line of an address, once. `dialect` is the greatest that the client has
        offered; None = one of SMB 1."""
        if address in self._warned or len(self._warned) >= ADDRESSES_MAX:
            return
        self._warned.add(address)
        offer = _NAMES.get(dialect) or f"the SMB dialect 0x{dialect:04X}"
        advice = "update the client"
        if self._requires_encryption and dialect == _SMB_210:
            advice += ", or permit SMB 2.1, which cannot encrypt, by --smb-encryption offered"
        _log.warning(
            "a client at %s offers %s at most and was refused: the server requires %s or later; %s",
            address,
            offer,
            self._least,
            advice,
        )
