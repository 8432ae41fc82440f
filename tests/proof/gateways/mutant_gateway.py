"""`strongroom` with a defect that the judgement of a round must find.

    python mutant_gateway.py stale|jumps serve ...

Lives here: the defects. Must not live here: what finds them (test_rounds_bite.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from strongroom.cli import main
from strongroom.engines.base import Record, Ref
from strongroom.engines.postgres.gateways.shared_time import SharedTime
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.values import TICKS_PER_S

_STALE_S = 0.3
_AHEAD_S = 4
_STEADY_S = 12.0


def stale() -> None:
    """It answers reads of what is there from its memory, for a short time. What was missing is
    looked for again, so that the defect does not show before the histories begin."""
    read, known = PostgresEngine.read, dict[tuple[Ref, ...], tuple[float, list[Record | None]]]()

    async def from_memory(self: PostgresEngine, reads: Sequence[Ref]) -> list[Record | None]:
        key, now = tuple(reads), time.monotonic()
        at_s, found = known.get(key, (0.0, [None]))
        if at_s < now - _STALE_S or None in found:
            _, found = known[key] = now, await read(self, reads)
        return found

    PostgresEngine.read = from_memory  # type: ignore[method-assign]  # of this process alone


def jumps() -> None:
    """Its store time jumps ahead, some seconds after its start."""
    now, began = SharedTime.now, time.monotonic()

    def jumped(self: SharedTime) -> int:
        has_jumped = time.monotonic() > began + _STEADY_S
        return now(self) + has_jumped * _AHEAD_S * TICKS_PER_S

    SharedTime.now = jumped  # type: ignore[method-assign]  # as above


_DEFECTS: dict[str, Callable[[], None]] = {"stale": stale, "jumps": jumps}

if __name__ == "__main__":
    _DEFECTS[sys.argv.pop(1)]()
    main()
