"""The objects of a body in a pool: their names, and what the first one says of the body.

    STRONGROOM-BODIES           the mark
    00000000000a1b2c            a body's first 4 MiB: its name is its id, as 16 hexadecimal digits
    00000000000a1b2c.00000001   the next 4 MiB, and so on

The first object has an attribute, which tells how far the body is, and which objects it may have.

Lives here: names, and `BodyState`. Pure.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, Self

MARK: Final = "STRONGROOM-BODIES"
TURN: Final = "turn"
STATE: Final = "state"
OBJECT_BYTES: Final = 4 * 1024 * 1024
REACH: Final = 16
"""Of so many objects, an upload says beforehand that it may write them."""
_BODY: Final = re.compile(r"([0-9a-f]{16})(\.[0-9a-f]{8})?")
_STATE: Final = re.compile(r"(arriving|whole|removed) ([0-9]{1,15})")


def object_name(body_id: int, number: int = 0) -> str:
    """Return the name of one object of a body; the first one has the number 0."""
    first = f"{body_id:016x}"
    return f"{first}.{number:08x}" if number else first


def other_names(body_id: int, objects: int) -> list[str]:
    """Return the names of a body's objects, without the first one."""
    return [object_name(body_id, number) for number in range(1, objects)]


def body_of(name: str) -> tuple[int, bool] | None:
    """Return the id of the body that an object belongs to, and whether it is the first one. None =
    it is no body's."""
    found = _BODY.fullmatch(name)
    return None if found is None else (int(found[1], 16), found[2] is None)


class BodyState(NamedTuple):
    """How far a body is.

    Attributes:
        word: "arriving", "whole" or "removed".
        number: of a whole body, its size in bytes; of others, how many objects it may have.
    """

    word: str
    number: int

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """What cannot be read counts as a body that arrives."""
        found = _STATE.fullmatch(text.decode("ascii", "replace"))
        return cls("arriving", REACH) if found is None else cls(found[1], int(found[2]))

    def text(self) -> bytes:
        return f"{self.word} {self.number}".encode()

    @property
    def is_whole(self) -> bool:
        return self.word == "whole"

    @property
    def size_bytes(self) -> int:
        """As far as it is known."""
        return self.number if self.is_whole else 0

    @property
    def objects(self) -> int:
        """How many objects it has at most."""
        if self.is_whole:
            return max(1, -(-self.number // OBJECT_BYTES))
        return self.number
