"""The long proof of order over several gateways.

Gateways pause, die and start in each of many histories; every answer has its place in one order.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.services.gateways.test_gateway_histories import KINDS

HISTORIES = 60
STEPS = 120
FAULTS = 12


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_what_two_gateways_answer_has_one_order(kind: str) -> None:
    """B-CWR-01, B-APP-03, B-PAG-19, B-LOP-01, B-LSE-22, T-WRI-08, Q-GET-07."""
    first = random.SystemRandom().getrandbits(31)
    for seed in range(first, first + HISTORIES):
        print(f"SEED={seed}", flush=True)
        verdict = asyncio.run(KINDS[kind](seed, STEPS, FAULTS))
        assert verdict.objects > 1
        assert verdict.linearizable, verdict.explain()
