"""Sessions end inside commits, and a primary is lost under load: nothing acknowledged is lost.

One short round of each; tests/proof/postgres has many, and many other faults.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.coordination.servers import PostgresServer
from tests.engines.postgres import faults
from tests.engines.postgres.cluster import PostgresCluster
from tests.engines.postgres.servers import Administrator, fresh_schema


def test_sessions_that_end_inside_commits_lose_and_repeat_nothing(
    postgres: PostgresServer, administrator: Administrator
) -> None:
    schema = fresh_schema()
    ended = faults.sessions_ended(postgres.url, schema, administrator, 2.0, seed=1)
    verdict, count = asyncio.run(ended)
    assert count > 5 and verdict.acknowledged > 100
    assert verdict.is_exact, verdict
    assert verdict.unknown == 0, "the database was there all the time"


def test_a_promoted_standby_has_all_that_was_acknowledged(tmp_path: Path) -> None:
    with PostgresCluster(tmp_path, standbys=2) as cluster:
        verdict, _ = asyncio.run(faults.primary_lost(cluster, fresh_schema(), seed=1))
    assert verdict.is_exact, verdict
