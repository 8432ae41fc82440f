"""Frames of SMB for fuzzing: recorded and built requests, changed at random.

The recording comes from Samba's smbclient. It lists, writes, reads, renames, copies and deletes
files, and asks for attributes, descriptors and shares. Each line of smb_frames.txt is a frame in
hexadecimal. The requests that smbclient does not send are in smb_seeds.py.

Each request of a compound is changed by itself before they are put together. Few frames have wrong
lengths, since such a frame ends its connection before any command is parsed.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path

from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.compounds import padding, split
from strongroom.wire.smb.header import ASYNC_COMMAND, FILE_ID, RELATED_OPERATIONS, FileId
from tests.fuzz.smb_seeds import built

RECORDED = tuple(
    bytes.fromhex(line)
    for line in Path(__file__).with_name("smb_frames.txt").read_text("ascii").split()
)
_NUMBERS = (0, 1, 7, 8, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 1 << 20, 1 << 31, 1 << 63)
# The offset of the FileId in a request's body, for the commands that have one.
_FILE_ID_AT = {6: 8, 7: 8, 8: 16, 9: 16, 10: 8, 11: 8, 14: 8, 15: 8, 16: 24, 17: 16, 18: 8}
_PLACEHOLDER = b"\xff" * 16
# After these commands, nothing is left to fuzz.
_ENDINGS = (Command.LOGOFF, Command.TREE_DISCONNECT)
_CHARGE = 16
_COMMANDS = (*range(3, 4), *range(5, 20), *_FILE_ID_AT)
_LENGTHS_OF_COMPOUNDS = (1, 1, 1, 1, 1, 1, 1, 2, 3, 5)


def _messages(frame: bytes) -> list[bytes]:
    """Return the messages of a frame, each without its link to the next."""
    found = [bytearray(one.message) for one in split(memoryview(frame))]
    for message in found:
        message[16:24] = bytes(8)
    return [bytes(message) for message in found]


SEEDS = (*(message for frame in RECORDED for message in _messages(frame)), *built())


class Changes:
    """Changes frames at random, by a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def frame(self) -> bytearray:
        """Return a request, or several in one frame, each changed in a few places."""
        chance = self.random
        frame, count = bytearray(), chance.choice(_LENGTHS_OF_COMPOUNDS)
        for number in range(count):
            message = self._message()
            if number and chance.random() < 0.8:
                _relate(message, names_open=chance.random() < 0.3)
            if number < count - 1:
                message += padding(len(message))
                struct.pack_into("<I", message, 20, len(message))
            frame += message
        if chance.random() < 0.01:
            self._change(frame, first=0)
        return frame

    def _message(self) -> bytearray:
        chance = self.random
        message = bytearray(chance.choice(SEEDS))
        if message[12] in _ENDINGS and chance.random() < 0.95:
            return self._message()
        for _ in range(chance.choice((0, 0, 1, 1, 2, 3, 8))):
            self._change(message)
        return message

    def any_bytes(self, frame: bytearray) -> bytearray:
        """Return the frame with changes that may fall on its header too."""
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


def _relate(message: bytearray, *, names_open: bool) -> None:
    """Mark the message as related to the previous one."""
    message[16] |= RELATED_OPERATIONS
    place = 64 + _FILE_ID_AT.get(message[12], 0)
    if message[12] in _FILE_ID_AT and not names_open and len(message) >= place + 16:
        message[place : place + 16] = _PLACEHOLDER


def addressed(
    frame: bytearray, message_id: int, session_id: int, tree_id: int, opens: list[FileId]
) -> tuple[bytes, int]:
    """Fill a frame with valid ids, so that it reaches its handlers.

    Arguments:
        opens: handles; most requests name one of them, the others keep their own FileId.

    Returns: the frame, and the next message id.
    """
    at = 0
    while len(frame) - at >= 64:
        (command,) = struct.unpack_from("<H", frame, at + 12)
        charge = _CHARGE if command == Command.READ else 1
        struct.pack_into("<H", frame, at + 6, charge)
        struct.pack_into("<H", frame, at + 14, 64)
        struct.pack_into("<II", frame, at + 32, 0, tree_id)
        struct.pack_into("<Q", frame, at + 40, session_id)
        frame[at + 16] &= RELATED_OPERATIONS
        if command == Command.CANCEL:
            _aim(frame, at, message_id)
        else:
            struct.pack_into("<Q", frame, at + 24, message_id)
            message_id += charge
        (step,) = struct.unpack_from("<I", frame, at + 20)
        place, end = at + 64 + _FILE_ID_AT.get(command, 0), at + step if step else len(frame)
        named = frame[place : place + 16]
        names_open = command in _FILE_ID_AT and place + 16 <= end and named != _PLACEHOLDER
        if names_open and opens and message_id % 8:
            frame[place : place + 16] = FILE_ID.write(opens[message_id // 8 % len(opens)])
        if not step or step % 8 or step < 64:
            break
        at += step
    return bytes(frame), message_id


def _aim(frame: bytearray, at: int, message_id: int) -> None:
    """Let a CANCEL name one of the last requests, or one of the first that were answered
    PENDING."""
    struct.pack_into("<Q", frame, at + 24, max(message_id - 1 - message_id % 7, 0))
    if message_id % 2:
        frame[at + 16] |= ASYNC_COMMAND
        struct.pack_into("<Q", frame, at + 32, message_id % 5)


def is_whole(frame: bytes) -> int:
    """Return how many messages a frame has. Raises: MalformedMessage."""
    return len(split(memoryview(frame)))
