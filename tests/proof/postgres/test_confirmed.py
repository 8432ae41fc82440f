"""The long proof of confirmation: a commit that only the primary has is not acknowledged.

The only standby is away, the session of a commit is ended in its wait, and the primary is lost.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.effort import scaled
from tests.engines.postgres import faults
from tests.engines.postgres.cluster import PostgresCluster
from tests.engines.postgres.mutants import without_confirmation
from tests.engines.postgres.servers import fresh_schema

ENDINGS = ("pg_terminate_backend", "pg_cancel_backend")
ROUNDS = scaled(30)


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("function", ENDINGS)
def test_nothing_is_acknowledged_that_only_a_lost_primary_had(
    tmp_path: Path, function: str
) -> None:
    found = []
    with PostgresCluster(tmp_path, standbys=1) as cluster:
        for _ in range(ROUNDS):
            found.append(asyncio.run(faults.confirmed(cluster, fresh_schema(), function)))
            cluster.rejoin()
        with without_confirmation():
            control = asyncio.run(faults.confirmed(cluster, fresh_schema(), function))
    early = sum(was_early for was_early, _ in found)
    lost = sum(not is_kept for _, is_kept in found)
    print(f"{function}: {ROUNDS} rounds, {early} acknowledged too early, {lost} lost")
    assert (early, lost) == (0, 0)
    assert control == (True, False), "without confirmation it is lost"
