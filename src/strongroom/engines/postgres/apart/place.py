"""The place of a store's bodies: what the database says of it, compared with the place's own mark.

Lives here: making a place ready, and opening it. Must not live here: the mark
(engines/bodies/mark.py), taking it over (place_adoption.py), what happens while it is served
(turns.py).
"""

from __future__ import annotations

from typing import Final, Protocol
from uuid import UUID

import msgspec

from strongroom.engines.bodies.base import BodiesUnfit, BodyStore
from strongroom.engines.bodies.mark import BodiesMark
from strongroom.engines.bodies.places import make_place_ready, open_place
from strongroom.engines.bodies.urls import place_url
from strongroom.engines.postgres.sessions.session import DatabaseUnfit
from strongroom.engines.postgres.sql.schema import PLACE
from strongroom.engines.postgres.sql.versions import APART_VERSION, lacking_version

# A store of version 1 lacks all but the id.
_NONE: Final = UUID(int=0)
OTHER_STATE: Final = (
    "{place} belongs to another state of this store. This database is a copy or was recovered to "
    "an earlier moment, or another database has taken the place over. If this one is to go on, "
    "stop all gateways of the other, and run `strongroom store adopt URL`"
)


class PlaceSession(Protocol):
    """A session of the database."""

    async def simple(self, sql: str, *values: str) -> list[list[str]]: ...


class PlaceRow(msgspec.Struct, frozen=True):
    """What the database says of the place.

    Attributes:
        place: its URL; empty = there is none.
        turns: the last ones, the newest first.
        database: see BodiesMark.
    """

    store: UUID
    place: str
    generation: UUID
    turns: tuple[UUID, ...]
    database: str

    def knows(self, mark: BodiesMark) -> bool:
        """Whether this database has seen everything that happened in the place."""
        knows_turn = mark.generation == self.generation and mark.turn in self.turns
        return knows_turn and mark.database in ("", self.database)

    def mark(self) -> BodiesMark:
        return BodiesMark(self.store, self.generation, self.turns[0], self.database)


async def place_row(session: PlaceSession) -> PlaceRow:
    rows = await session.simple(PLACE)
    if not rows:
        raise DatabaseUnfit("this database has no store; make one with `strongroom store init`")
    store, place, generation, turns, database = rows[0]
    known = msgspec.json.decode(turns or "[]", type=tuple[UUID, ...])
    return PlaceRow(UUID(store), place, UUID(generation) if generation else _NONE, known, database)


async def make_place(session: PlaceSession, url: str) -> None:
    """Make a place ready for the bodies of a store, and note it there. Both may be so already.

    Raises: DatabaseUnfit, BodiesUnfit, BodiesAway.
    """
    place = place_url(url)
    row = await place_row(session)
    if row.generation == _NONE and (lacking := lacking_version(1, APART_VERSION)) is not None:
        raise DatabaseUnfit(lacking)
    if row.place and row.place != place:
        raise DatabaseUnfit(_elsewhere(row.place, place))
    if not row.turns:
        # The place first would be no harm, but its mark has the database's first turn.
        await session.simple("UPDATE store SET turns = ARRAY[gen_random_uuid()] WHERE turns = '{}'")
        row = await place_row(session)
    await make_place_ready(place, row.mark())
    await session.simple("UPDATE store SET bodies = $1 WHERE bodies IS NULL", place)


async def opened_place(session: PlaceSession, url: str | None) -> BodyStore | None:
    """Open the place that a gateway was told; None if the store has none, and none was told.

    Raises: DatabaseUnfit, BodiesUnfit: they do not belong together; BodiesAway.
    """
    row = await place_row(session)
    if url is None:
        if row.place:
            raise DatabaseUnfit(
                f"this store keeps its long bodies in {row.place}: serve it with "
                f"--bodies {row.place}"
            )
        return None
    place = place_url(url)
    if not row.place:
        raise DatabaseUnfit(
            "this store keeps all bodies in the database so far. An empty place is made ready by "
            f"`strongroom store init URL --bodies {place}`"
        )
    if row.place != place:
        raise DatabaseUnfit(_elsewhere(row.place, place))
    return await opened_known(session, row.place)


async def opened_known(session: PlaceSession, place: str) -> BodyStore:
    """Open the place of a store. Raises: BodiesUnfit, BodiesAway."""
    bodies = await open_place(place)
    try:
        mark = await bodies.look()
        # A new turn is written to the database first, so this row is no older than the mark.
        row = await place_row(session)
        if mark.store != row.store:
            raise BodiesUnfit(
                f"{place} has the bodies of another store; name the place of this one"
            )
        if not row.knows(mark):
            raise BodiesUnfit(OTHER_STATE.format(place=place))
    except BaseException:
        await bodies.close()
        raise
    return bodies


def _elsewhere(known: str, given: str) -> str:
    return (
        f"this store keeps its long bodies in {known}, not in {given}. If they were moved, "
        f"`strongroom store adopt URL --bodies {given}` tells the store"
    )
