"""The long proof of failover: a primary dies under load, and a synchronous standby is promoted.

No acknowledged write is lost, and no increment happens twice.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.effort import scaled
from tests.engines.postgres import faults
from tests.engines.postgres.cluster import PostgresCluster
from tests.engines.postgres.load import progress
from tests.engines.postgres.servers import fresh_schema

ROUNDS = scaled(30)


@pytest.mark.timeout(2400)
def test_a_promoted_standby_has_all_that_was_acknowledged(tmp_path: Path) -> None:
    first, promotions = random.SystemRandom().getrandbits(31), []
    with PostgresCluster(tmp_path, standbys=2) as cluster, progress(f"seed {first}") as add:
        for seed in range(first, first + ROUNDS):
            verdict, taken = asyncio.run(faults.primary_lost(cluster, fresh_schema(), seed))
            add(verdict)
            promotions.append(taken)
            assert verdict.is_exact, f"seed {seed}: {verdict}"
            cluster.rejoin()
    print(f"promotions took {min(promotions):.2f} to {max(promotions):.2f} s")
