"""The buffer of pipelined requests: bytes that arrive before the current request is answered (RFC
9112, section 9.3.2).

Lives here: the buffer. Must not live here: its limit (http/protocol.py).
"""

from __future__ import annotations


class PipelineBuffer:
    """The bytes of later requests, in order.

    Attributes:
        is_at_eof: whether the client will send no more.
    """

    __slots__ = ("_data", "_start", "is_at_eof")

    def __init__(self) -> None:
        self._data = b""
        self._start = 0
        self.is_at_eof = False

    def __len__(self) -> int:
        return len(self._data) - self._start

    def add(self, data: bytes, start: int) -> int:
        """Append `data` from `start` on. Return how many bytes are buffered now."""
        if self._data:
            self._data = self._data[self._start :] + data[start:]
            self._start = 0
        else:
            # Not sliced, since a thousand requests in one piece would be copied a thousand times.
            self._data = data
            self._start = start
        return len(self)

    def take(self) -> tuple[bytes, int]:
        """Return all bytes and the position where they start, and empty the buffer."""
        taken = self._data, self._start
        self._data, self._start = b"", 0
        return taken

    def end(self) -> None:
        self.is_at_eof = True
