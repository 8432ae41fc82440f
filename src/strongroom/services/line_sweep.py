"""Sweeping the lines that nobody waits in any more: those that gateways left behind when they died.

Such a line holds up nobody, and whoever waits for the same thing again removes what is left in it.
So this is done seldom, and needs no job. A gateway that is alone writes no lines, and sweeps none.
"""

from __future__ import annotations

import asyncio
from typing import Final

from strongroom.engines.base import Commit, Face, Partition, Position, Ref, Step, Write
from strongroom.engines.gateways import GatewayRun
from strongroom.semantics.core import lines
from strongroom.semantics.core.lines import NOBODY, Line, Run
from strongroom.services.core.decisions import Decision, Found, ReadOne, Reads
from strongroom.services.core.runner import Services
from strongroom.store.core import line_keys, records
from strongroom.store.core.records import DamagedRecord
from strongroom.values import Purpose

_INTERVAL_S: Final = 60.0
_OWNER: Final = b"lines"
_PAGE: Final = 256


class LineSweeps:
    """When the last sweep began, by the event loop's clock; None = none has begun."""

    def __init__(self) -> None:
        self.last_s: float | None = None


async def sweep_lines(services: Services) -> None:
    """Sweep all lines, if it is time and this gateway should do it. Raises: EngineError."""
    gateways, sweeps = services.store.gateways, services.disposable.of(LineSweeps)
    now_s = asyncio.get_running_loop().time()
    is_due = sweeps.last_s is None or now_s >= sweeps.last_s + _INTERVAL_S
    if is_due and not gateways.is_alone and gateways.owns(_OWNER):
        sweeps.last_s = now_s
        await remove_ended_lines(services)


async def remove_ended_lines(services: Services) -> None:
    """Remove the lines whose tickets have all ended."""
    now = await services.store.now()
    start: Position | None = Position(b"", b"")
    while start is not None:
        page = await services.store.scan(line_keys.LINES, start, None, _PAGE)
        for face in page.faces():
            await _remove_ended(services, face, now)
        start = page.resume


async def _remove_ended(services: Services, face: Face, now: int) -> None:
    try:
        line = records.LINE.decode(face.value)
    except DamagedRecord:
        return  # doctor reports it
    runs = {one.run for one in line.tickets}
    has_ended = services.store.gateways.has_ended
    dead = tuple(sorted(run for run in runs if has_ended(GatewayRun(*run))))
    if lines.is_over(line, dead, now):
        reads = Reads()
        ref = Ref(Partition(line_keys.LINES, face.partition), line_keys.LINE_KEY)
        read = reads.add(ref, records.LINE)
        await services.commit(RemoveLine(ref.partition, reads.refs, Purpose.FREEING, read, dead))


class RemoveLine(Decision[None], frozen=True):
    """Remove a line, unless somebody waits in it."""

    line: ReadOne[Line]
    dead: tuple[Run, ...]

    def decide(self, found: Found, stamp: int) -> Commit[None]:
        if not lines.is_over(found[self.line] or NOBODY, self.dead, stamp):
            return Commit(None)
        return Commit(None, (Step(self.partition, (Write(self.line.ref.key, None),)),))
