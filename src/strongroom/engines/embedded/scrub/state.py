"""The state of the scrub at present: the pass, and the places that are damaged.

Lives here: how both change. Must not live here: their form in a file (kept.py), what is read
(pieces.py).
"""

from __future__ import annotations

import logging
from collections.abc import Container
from typing import Final

from strongroom.engines.base import Ref
from strongroom.engines.embedded.records.record_walk import WalkPosition
from strongroom.engines.embedded.scrub.kept import (
    DamagedPlace,
    KeptFinding,
    KeptScrub,
    PassPosition,
)

FINDINGS_MAX: Final = 1000
"""Damage beyond so many places is only counted, in the log too."""

_log = logging.getLogger(__name__)


class Findings:
    """The places that are damaged now, as far as is known.

    Attributes:
        more: see KeptScrub.
    """

    def __init__(self, kept: KeptScrub) -> None:
        self._by_place: dict[DamagedPlace, KeptFinding] = {one.place: one for one in kept.findings}
        self.more = kept.more

    @property
    def count(self) -> int:
        return len(self._by_place) + self.more

    def all(self) -> tuple[KeptFinding, ...]:
        """In the order in which they were found."""
        return tuple(self._by_place.values())

    def add(self, place: DamagedPlace, problem: str, now_s: float, pass_s: float) -> None:
        """A place that is new is logged."""
        known = self._by_place.get(place)
        if known is None and len(self._by_place) >= FINDINGS_MAX:
            self.more += 1
            return
        found_s = now_s if known is None else known.found_s
        self._by_place[place] = KeptFinding(place, problem, found_s, pass_s)
        if known is None:
            _log.error(
                "the scrub found damage: %s: %s; strongroom doctor names what it belongs to",
                place.text(),
                problem,
            )

    def remove(self, place: DamagedPlace) -> None:
        """The place is sound, or gone."""
        if self._by_place.pop(place, None) is not None:
            _log.warning("what the scrub found damaged is sound or gone: %s", place.text())

    def remove_records(
        self, table: int, first: WalkPosition, until: WalkPosition | None, but: Container[Ref]
    ) -> None:
        """All records in a range are sound or gone, but those in `but`."""
        for place in list(self._by_place):
            if place.kind != "record" or place.table != table or place.ref in but:
                continue
            if first <= place.position and (until is None or place.position < until):
                self.remove(place)

    def end_pass(self, pass_s: float) -> None:
        """Remove what the pass that began at `pass_s` has not seen, though it has seen all."""
        for one in self.all():
            if one.pass_s != pass_s:
                self.remove(one.place)


class ScrubState:
    """The pass, and what was found. See KeptScrub for the attributes."""

    def __init__(self, kept: KeptScrub) -> None:
        self.began_s = kept.began_s
        self.is_running = kept.is_running
        self.ended_s = kept.ended_s
        self.position = kept.position
        self.read_bytes = kept.read_bytes
        self.findings = Findings(kept)

    def kept(self) -> KeptScrub:
        return KeptScrub(
            began_s=self.began_s,
            is_running=self.is_running,
            ended_s=self.ended_s,
            position=self.position,
            read_bytes=self.read_bytes,
            findings=self.findings.all(),
            more=self.findings.more,
        )

    def begin_pass(self, now_s: float) -> None:
        """Unless one is to be continued."""
        if not self.is_running or self.began_s is None:
            self.began_s, self.is_running = now_s, True
            self.position, self.read_bytes = PassPosition(), 0
            self.findings.more = 0

    def end_pass(self, now_s: float) -> None:
        """The pass has seen everything."""
        self.findings.end_pass(self.began_s or 0.0)
        self.is_running, self.ended_s = False, now_s

    def note(self, place: DamagedPlace, problem: str | None, now_s: float) -> None:
        """Note what was found at a place; None = nothing is wrong, or it is gone."""
        if problem is None:
            self.findings.remove(place)
        else:
            self.findings.add(place, problem, now_s, self.began_s or 0.0)
