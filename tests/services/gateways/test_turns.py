"""Requests at several gateways that wait for the same thing are served in order of arrival."""

from __future__ import annotations

from typing import Any

import pytest

from tests.services.container_calls import run
from tests.services.lines import HELD, Gateways, served

KINDS = pytest.mark.parametrize("kind", HELD)
WAITERS = 12


async def started(kind: str) -> tuple[Gateways, Any]:
    """Return two gateways, and the lease that somebody has there; None = there is no message."""
    gateways, held = Gateways(), HELD[kind]
    await held.make(gateways.all[0])
    return gateways, None if kind == "messages" else await held.get(gateways.all[0], 0)


@KINDS
def test_who_waited_first_is_served_first_over_all_gateways(kind: str) -> None:
    """B-WAI-08, Q-GET-08, F-LSE-04."""

    async def test() -> None:
        gateways, got = await started(kind)
        # Now and then two in a row at one gateway.
        waiters = [await gateways.arrive(HELD[kind], (n % 5) % 2) for n in range(WAITERS)]
        order = await served(waiters, HELD[kind], gateways.all[1], got)
        assert order == list(range(WAITERS))
        assert gateways.lines() == []

    run(test)
