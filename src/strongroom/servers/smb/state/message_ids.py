"""Message ids and credits: which requests a client may send.

Lives here: the window of ids, and how it grows. Source: [MS-SMB2] sections 3.3.1.1, 3.3.1.2; smb.md
1.5. The rule of granting is Samba's and Windows'.
"""

from __future__ import annotations

from typing import Final

CREDITS_MAX: Final = 8192
# The most ids from the lowest unused one up. At this width, a client that leaves an old id unused
# gets no new ones.
_SPAN_MAX: Final = 2 * CREDITS_MAX


class MessageIds:
    """The ids that a client may use: those from a low mark on that are still unused.

    A credit stands for one id. At first there is one, for the first NEGOTIATE.
    """

    __slots__ = ("_low", "_top", "_used", "available")

    def __init__(self) -> None:
        self._low = 0
        self._top = 1
        self._used = 0  # bit n stands for the id `_low + n`
        self.available = 1

    def consume(self, first: int, charge: int) -> bool:
        """Use the ids of a request; a `charge` of 0 counts as 1.

        Returns: whether all of them were available; if not, none is used.
        """
        count = max(charge, 1)
        if first < self._low or first + count > self._top:
            return False
        ids = ((1 << count) - 1) << (first - self._low)
        if self._used & ids:
            return False
        self._used |= ids
        self.available -= count
        # The lowest ids that are all used leave the window.
        gone = (~self._used & self._used + 1).bit_length() - 1
        self._used >>= gone
        self._low += gone
        return True

    def grant(self, charge: int, requested: int) -> int:
        """Grant credits by an answer.

        Arguments:
            charge: of the request that is answered; these come back.
            requested: CreditRequest.

        Returns: how many were granted. The client always has at least one after this.
        """
        back = max(charge, 1)
        more = min(max(requested, 1) - 1, CREDITS_MAX - back - self.available)
        granted = back + max(more, 0)
        granted = min(granted, CREDITS_MAX - self.available, self._low + _SPAN_MAX - self._top)
        granted = max(granted, 0 if self.available else 1)
        self._top += granted
        self.available += granted
        return granted
