"""The mark of a place that keeps bodies: to which store it belongs, and to which state of it.

Lives here: what the mark says, and its text. Must not live here: where it lies (layout.py,
rados/pool.py), when it changes (engines/postgres/apart/).

The turn answers one question: does this database know everything that happened in the place? The
gateways of a store write a new turn every few seconds, first to the database and then to the place.
So a database that has been served all the time knows the turn of the place. A copy, or one that was
recovered to an earlier moment, does not.
"""

from __future__ import annotations

from uuid import UUID

import msgspec

FORMAT = 1


class UnknownMark(ValueError):
    """The mark cannot be read; the text says why."""


class BodiesMark(msgspec.Struct, frozen=True):
    """What a place says of itself.

    Attributes:
        store: the id of the store to which it belongs.
        generation: changes when another database takes the place over.
        turn: the last one of the database that it belongs to.
        database: which one that is, in no format that is known here; empty = not known yet. A copy
            has the turns of its source, and is told by this as soon as it is opened.
        format: the version of the place's layout.
    """

    store: UUID
    generation: UUID
    turn: UUID
    database: str = ""
    format: int = FORMAT

    def text(self) -> bytes:
        return msgspec.json.encode(self) + b"\n"


def parse_mark(text: bytes) -> BodiesMark:
    """Raises: UnknownMark."""
    try:
        mark = msgspec.json.decode(text, type=BodiesMark)
    except msgspec.MsgspecError as error:
        raise UnknownMark(f"its mark cannot be read: {error}") from None
    if mark.format != FORMAT:
        raise UnknownMark(
            f"it has the format {mark.format}, and this program knows {FORMAT}; use the version "
            "of Strongroom that wrote it"
        )
    return mark
