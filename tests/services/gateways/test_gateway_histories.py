"""Short histories over two gateways; many and long ones are in tests/proof."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from strongroom.testing.history import Verdict
from tests.services import gateway_bodies, gateway_histories

WAIT_S = 0.02
KINDS: dict[str, Callable[[int, int, int], Coroutine[Any, Any, Verdict]]] = {
    "appends": gateway_bodies.append_history,
    "blobs": gateway_histories.blob_history,
    "entities": gateway_histories.entity_history,
    "guarded writes": gateway_bodies.guarded_history,
    "leases": gateway_histories.lease_history,
    "leases that are waited for": functools.partial(gateway_histories.lease_history, wait_s=WAIT_S),
    "messages": gateway_histories.message_history,
    "messages that are waited for": functools.partial(
        gateway_histories.message_history, wait_s=WAIT_S
    ),
    "pages": gateway_bodies.page_history,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_what_two_gateways_answer_has_one_order(kind: str, seed: int) -> None:
    """B-CWR-01, B-APP-03, B-PAG-19, B-LOP-01, B-LSE-22, T-WRI-08, Q-GET-07: gateways pause, die and
    start during the history."""
    history = KINDS[kind]

    async def test() -> Verdict:
        async with asyncio.timeout(60):
            return await history(seed, 40, 3)

    verdict = asyncio.run(test())
    assert verdict.objects > 1
    assert verdict.linearizable, verdict.explain()
