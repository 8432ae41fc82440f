"""A pool of a real cluster keeps the contract of places, and a store over it the engine's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom.testing.engine_contract import CONTRACT, SHARED_CONTRACT, SharedCase, prove
from tests.coordination.servers import PostgresServer
from tests.engines.bodies import contract
from tests.engines.postgres import test_bodies_apart, test_folders_of_bodies
from tests.engines.postgres.apart import Trial
from tests.engines.postgres.servers import Administrator
from tests.proof.ceph.cluster import CephCluster
from tests.proof.ceph.pools import PoolApart, RealPool

_TRIALS = {
    "a dropped body stays until no gateway reads it": test_bodies_apart._lives,
    "what nobody needs stays for a week": test_bodies_apart._kept,
    "an upload that was given up leaves nothing": test_bodies_apart._given_up,
    "what a dead gateway wrote is removed": test_bodies_apart._left,
    "after a late heartbeat the sweep goes on": test_bodies_apart._late,
    "a copy of the database serves only when it adopted": test_folders_of_bodies._copy_behind,
    "a server on a fresh copy removes nothing": test_folders_of_bodies._fresh_copy,
}


@pytest.fixture(params=["bodies", "coded"])
def place(ceph: CephCluster, request: pytest.FixtureRequest) -> Iterator[RealPool]:
    """An empty namespace of a replicated pool, and of an erasure-coded one."""
    made = RealPool(ceph, request.param)
    yield made
    made.close()


@pytest.mark.parametrize("case", contract.CONTRACT)
def test_a_pool_keeps_the_contract_of_places(place: RealPool, case: str) -> None:
    asyncio.run(contract.CONTRACT[case](place))


@pytest.mark.parametrize("case", [*CONTRACT, *SHARED_CONTRACT], ids=lambda case: case.__name__)
def test_an_engine_with_bodies_in_a_pool_keeps_the_contract(
    postgres: PostgresServer,
    administrator: Administrator,
    pool: RealPool,
    tmp_path: Path,
    case: SharedCase,
) -> None:
    """Bodies of 101 bytes and more lie in the pool."""
    asyncio.run(prove(case, PoolApart(postgres.url, administrator, pool, tmp_path)))


@pytest.mark.parametrize("trial", _TRIALS.values(), ids=_TRIALS)
def test_a_pool_is_swept_and_taken_over_as_a_folder_is(
    postgres: PostgresServer,
    administrator: Administrator,
    pool: RealPool,
    tmp_path: Path,
    trial: Trial,
) -> None:
    async def whole() -> None:
        subject = PoolApart(postgres.url, administrator, pool, tmp_path)
        await subject.start()
        try:
            await trial(subject)
        finally:
            await subject.stop()

    asyncio.run(whole())
