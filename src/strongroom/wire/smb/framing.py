"""Frames: each SMB message is preceded by its length in four bytes.

Source: [MS-SMB2] section 2.1 (Direct TCP); smb.md 1.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from strongroom.wire.smb.structures import MalformedMessage

PREFIX_BYTES: Final = 4
_INBOX_BYTES: Final = 64 * 1024
# More takes long to receive, and many connections may be ready in the same turn of the loop.
_RECEIVED_AT_ONCE_BYTES: Final = 256 * 1024

SMB1_PROTOCOL_ID: Final = b"\xffSMB"
SMB2_PROTOCOL_ID: Final = b"\xfeSMB"
TRANSFORM_PROTOCOL_ID: Final = b"\xfdSMB"


def prefix(size_bytes: int) -> bytes:
    """The four bytes before a frame of this size."""
    return size_bytes.to_bytes(PREFIX_BYTES, "big")


class FrameAssembler:
    """Assembles frames from the received bytes of a socket.

    Small frames are copied out of an inbox. A large one is received into its own memory, so that
    its bytes are not copied again.

    Attributes:
        frame_bytes_max: a longer frame is refused; it may be changed between frames.
    """

    __slots__ = ("_filled", "_frame", "_inbox", "_partial_bytes", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._inbox = bytearray(_INBOX_BYTES)
        self._partial_bytes = 0  # bytes of the inbox that belong to a frame not yet complete
        self._frame: bytearray | None = None
        self._filled = 0

    @property
    def is_frame_incomplete(self) -> bool:
        """Whether a frame has begun and is incomplete."""
        return self._frame is not None or self._partial_bytes > 0

    def buffer(self) -> memoryview:
        """The memory for the next received bytes. It is never empty."""
        if self._frame is not None:
            return memoryview(self._frame)[self._filled : self._filled + _RECEIVED_AT_ONCE_BYTES]
        return memoryview(self._inbox)[self._partial_bytes :]

    def received(self, count: int) -> Iterator[memoryview]:
        """The frames that are complete after `count` more bytes are in the buffer."""
        if self._frame is not None:
            self._filled += count
            if self._filled == len(self._frame):
                whole, self._frame = self._frame, None
                yield memoryview(whole)
            return
        yield from self._from_inbox(self._partial_bytes + count)

    def _from_inbox(self, end: int) -> Iterator[memoryview]:
        inbox, at = memoryview(self._inbox), 0
        self._partial_bytes = 0
        while end - at >= PREFIX_BYTES:
            size = self._size(inbox[at : at + PREFIX_BYTES])
            at += PREFIX_BYTES
            if end - at < size:
                self._frame, self._filled = bytearray(size), end - at
                self._frame[: self._filled] = inbox[at:end]
                return
            yield memoryview(bytes(inbox[at : at + size]))
            at += size
        self._partial_bytes = end - at
        inbox[: self._partial_bytes] = bytes(inbox[at:end])

    def _size(self, four: memoryview) -> int:
        size = int.from_bytes(four[1:], "big")
        if four[0] != 0:
            raise MalformedMessage(f"a frame begins with 0x{four[0]:02X}")
        if not PREFIX_BYTES <= size <= self.frame_bytes_max:
            raise MalformedMessage(f"a frame of {size} bytes; {self.frame_bytes_max} are allowed")
        return size
