"""Long outages of the database: a primary that hangs, and a primary without its standby."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.effort import scaled
from tests.engines.postgres import faults
from tests.engines.postgres.cluster import PostgresCluster
from tests.engines.postgres.load import progress
from tests.engines.postgres.servers import fresh_schema

HANGS = scaled(10)
AWAY_S = 120.0


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[PostgresCluster]:
    with PostgresCluster(tmp_path, standbys=1) as cluster:
        yield cluster


@pytest.mark.timeout(1200)
def test_a_primary_that_hangs_is_given_up_for_the_one_that_was_promoted(
    pair: PostgresCluster,
) -> None:
    """It still accepts connections, and answers nothing. It goes on after the other one has taken
    over."""
    with progress("primaries that hang") as add:
        for seed in range(HANGS):
            verdict = asyncio.run(faults.primary_hangs(pair, fresh_schema(), seed))
            add(verdict)
            assert verdict.is_exact, f"seed {seed}: {verdict}"
            pair.rejoin()


@pytest.mark.timeout(600)
def test_sessions_that_are_given_up_do_not_use_the_server_up(pair: PostgresCluster) -> None:
    """While no standby is there, nothing is acknowledged, and sessions wait in their commits."""
    verdict, most = asyncio.run(faults.standby_away(pair, fresh_schema(), AWAY_S))
    print(f"{AWAY_S} s without a standby: at most {most} sessions, {verdict}")
    assert verdict.is_exact, verdict
    assert most <= 2 * (4 + 1), "the gateway has five sessions, and some that are about to end"
