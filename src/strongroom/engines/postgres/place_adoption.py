"""A place of bodies, taken over by a database that was copied or recovered.

Lives here: `PlaceAdoption`: what would happen, and the adoption itself. Must not live here: asking
the operator (cli/store.py).

The new generation is written to the database first. If that is cut, no database is served with the
place until the adoption is repeated.
"""

from __future__ import annotations

import asyncio
from typing import Final

from strongroom.engines.bodies.base import BodiesUnfit, BodyStore
from strongroom.engines.bodies.mark import BodiesMark
from strongroom.engines.bodies.places import open_place
from strongroom.engines.bodies.urls import place_url
from strongroom.engines.postgres.apart.place import place_row
from strongroom.engines.postgres.apart.turns import OBSERVE_S
from strongroom.engines.postgres.sql.schema import TRANSFER_LOOK
from strongroom.engines.postgres.transfer import StoreLink, refuse_gateways

_ADOPT: Final = """
UPDATE store SET bodies = $1, generation = gen_random_uuid(), turns = ARRAY[gen_random_uuid()]"""
_LOOK_S: Final = 1.0


class PlaceAdoption:
    """An adoption that is possible; make it with `prepared`, and close it.

    Attributes:
        place: its URL.
        is_needed: whether the place does not belong to this database already.
    """

    def __init__(
        self, link: StoreLink, bodies: BodyStore, mark: BodiesMark, is_needed: bool
    ) -> None:
        self._link = link
        self._bodies = bodies
        self._mark = mark
        self.place = bodies.shown
        self.shown = link.shown
        self.is_needed = is_needed

    @classmethod
    async def prepared(cls, url: str, schema: str, place: str | None) -> PlaceAdoption:
        """Look what there is, and change nothing.

        Arguments:
            place: where the bodies are now; None = where the database says.

        Raises: BodiesUnfit, CopyRefused: it is impossible; the text says why. Unavailable.
        """
        link = await StoreLink.open(url, schema, (TRANSFER_LOOK,))
        try:
            refuse_gateways(link.shown, await link.look())
            row = await place_row(link)
            known = place_url(place) if place is not None else row.place
            if not row.place or not known:
                raise BodiesUnfit(
                    f"{link.shown} keeps all bodies in the database: there is nothing to adopt"
                )
            bodies = await open_place(known)
        except BaseException:
            link.close()
            raise
        adoption = cls(link, bodies, bodies.mark, not row.knows(bodies.mark) or known != row.place)
        if bodies.mark.store != row.store:
            await adoption.close()
            raise BodiesUnfit(
                f"{known} has the bodies of another store; name the place of this one"
            )
        return adoption

    async def adopt(self, observe_s: float | None = None) -> None:
        """Look on for a while, then take the place over.

        Raises: BodiesUnfit: another database is being served with it; Unavailable.
        """
        observe_s = OBSERVE_S if observe_s is None else observe_s
        until_s = asyncio.get_running_loop().time() + observe_s
        while True:
            if await self._bodies.look() != self._mark:
                raise BodiesUnfit(
                    f"another database is being served with {self.place}: its mark has changed "
                    "just now. Stop all gateways of that database first"
                )
            if asyncio.get_running_loop().time() >= until_s:
                break
            await asyncio.sleep(min(_LOOK_S, observe_s))
        refuse_gateways(self.shown, await self._link.look())
        await self._link.simple(_ADOPT, self.place)
        await self._bodies.put_mark((await place_row(self._link)).mark())

    async def close(self) -> None:
        self._link.close()
        await self._bodies.close()
