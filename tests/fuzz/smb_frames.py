"""Frames of SMB for fuzzing: recorded ones, changed at random.

The recording is of Samba's smbclient. It lists, writes, reads, renames, copies and deletes files,
and asks for attributes, descriptors and shares. Each line of smb_frames.txt is a frame in
hexadecimal.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path

from strongroom.wire.smb.compounds import split
from strongroom.wire.smb.header import FILE_ID, FileId

RECORDED = tuple(
    bytes.fromhex(line)
    for line in Path(__file__).with_name("smb_frames.txt").read_text("ascii").split()
)
_NUMBERS = (0, 1, 7, 8, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 1 << 20, 1 << 31, 1 << 63)
# Where the FileId of a request lies in its body, for the commands that have one.
_FILE_ID_AT = {6: 8, 7: 8, 8: 16, 9: 16, 10: 8, 11: 8, 14: 8, 15: 8, 16: 24, 17: 16, 18: 8}
# LOGOFF and TREE_DISCONNECT: after them, nothing is left to be fuzzed.
_ENDINGS = (2, 4)
_READ, _CHARGE = 8, 16
_COMMANDS = (*range(2, 20), *_FILE_ID_AT)


class Changes:
    """Changes frames at random, as the seed says."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def frame(self) -> bytearray:
        """A recorded frame, or two in one, changed in a few places."""
        chance = self.random
        frame = bytearray(chance.choice(RECORDED))
        if frame[12] in _ENDINGS and chance.random() < 0.9:
            return self.frame()
        if chance.random() < 0.1:
            frame += bytes(-len(frame) % 8)
            frame[20:24] = struct.pack("<I", len(frame))
            frame += chance.choice(RECORDED)
        for _ in range(chance.choice((0, 1, 1, 2, 3, 8))):
            self._change(frame)
        return frame

    def any_bytes(self, frame: bytearray) -> bytearray:
        """The frame with changes that may fall on its header too."""
        for _ in range(self.random.choice((1, 2, 5, 20))):
            self._change(frame, first=0)
        return frame

    def _change(self, frame: bytearray, first: int = 64) -> None:
        chance = self.random
        if len(frame) <= first:
            return
        at = chance.randrange(first, len(frame))
        kind = chance.randrange(6)
        if kind == 0:
            frame[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            size, form = chance.choice(((2, "<H"), (4, "<I"), (8, "<Q")))
            at -= at % size
            number = (chance.choice(_NUMBERS) + chance.choice((-1, 0, 0, 1))) % (1 << 8 * size)
            frame[at : at + size] = struct.pack(form, number)
        elif kind == 2:
            del frame[at:]
        elif kind == 3:
            frame[at:at] = chance.randbytes(chance.randrange(1, 20))
        elif kind == 4:
            other = chance.choice(RECORDED)
            start = chance.randrange(len(other))
            frame[at : at + 16] = other[start : start + 16]
        elif first:
            struct.pack_into("<H", frame, 12, chance.choice(_COMMANDS))


def addressed(
    frame: bytearray, message_id: int, session_id: int, tree_id: int, opens: list[FileId]
) -> tuple[bytes, int]:
    """A frame with ids that mean something, so that it comes as far as its handlers.

    Arguments:
        opens: one of them is named by most requests; the rest keep what they name.

    Returns: the frame, and the next message id.
    """
    at = 0
    while len(frame) - at >= 64:
        (command,) = struct.unpack_from("<H", frame, at + 12)
        charge = _CHARGE if command == _READ else 1
        struct.pack_into("<H", frame, at + 6, charge)
        struct.pack_into("<H", frame, at + 14, 64)
        struct.pack_into("<Q", frame, at + 24, message_id)
        struct.pack_into("<I", frame, at + 36, tree_id)
        struct.pack_into("<Q", frame, at + 40, session_id)
        frame[at + 16] &= 0x04
        message_id += charge
        place = at + 64 + _FILE_ID_AT.get(command, 0)
        if command in _FILE_ID_AT and opens and message_id % 4 and len(frame) - place >= 16:
            frame[place : place + 16] = FILE_ID.write(opens[message_id // 4 % len(opens)])
        (step,) = struct.unpack_from("<I", frame, at + 20)
        if not step or step % 8 or step < 64:
            break
        at += step
    return bytes(frame), message_id


def is_whole(frame: bytes) -> int:
    """How many messages a frame has. Raises: MalformedMessage."""
    return len(split(memoryview(frame)))
