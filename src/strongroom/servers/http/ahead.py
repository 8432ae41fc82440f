"""Bytes of later requests, which came before the answer to the one that is handled (RFC 9112,
section 9.3.2: pipelining).

Lives here: keeping them. Must not live here: how many may come (http/protocol.py).
"""

from __future__ import annotations


class Ahead:
    """The bytes that a client has sent ahead, in order.

    Attributes:
        is_all: whether the client will send no more.
    """

    __slots__ = ("_data", "_start", "is_all")

    def __init__(self) -> None:
        self._data = b""
        self._start = 0
        self.is_all = False

    def __len__(self) -> int:
        return len(self._data) - self._start

    def add(self, data: bytes, start: int) -> int:
        """Keep `data` from `start` on. Returns how many bytes there are now."""
        if self._data:
            self._data = self._data[self._start :] + data[start:]
            self._start = 0
        else:
            # Not cut: a thousand requests in one piece would be copied a thousand times.
            self._data = data
            self._start = start
        return len(self)

    def take(self) -> tuple[bytes, int]:
        """All of it, and where in it to begin; afterwards there is nothing."""
        taken = self._data, self._start
        self._data, self._start = b"", 0
        return taken

    def end(self) -> None:
        """The client sends no more."""
        self.is_all = True
