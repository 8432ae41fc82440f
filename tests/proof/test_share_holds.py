"""The long proof that one gateway at a time serves a share: gateways pause, die and start."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.services import gateway_files

HISTORIES = 40
STEPS = 160
FAULTS = 12


@pytest.mark.timeout(1800)
def test_exclusive_opens_lose_no_count() -> None:
    first = random.SystemRandom().getrandbits(31)
    for seed in range(first, first + HISTORIES):
        print(f"SEED={seed}", flush=True)
        acknowledged, tried, final = asyncio.run(gateway_files.count(seed, STEPS, FAULTS))
        assert acknowledged <= final <= tried


@pytest.mark.timeout(1800)
def test_no_acknowledged_write_is_lost() -> None:
    first = random.SystemRandom().getrandbits(31)
    for seed in range(first, first + HISTORIES):
        print(f"SEED={seed}", flush=True)
        for possible, found in asyncio.run(gateway_files.slots(seed, STEPS, FAULTS)):
            assert found in possible
