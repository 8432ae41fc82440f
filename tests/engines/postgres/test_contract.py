"""The PostgreSQL engine satisfies the contract, case by case, also with several gateways."""

from __future__ import annotations

import asyncio

import pytest

from strongroom.testing.engine_contract import (
    CONTRACT,
    SHARED_CONTRACT,
    Case,
    SharedCase,
    prove,
)
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.servers import Administrator
from tests.engines.postgres.subject import PostgresSubject


@pytest.mark.parametrize("case", CONTRACT, ids=lambda case: case.__name__)
def test_the_engine_keeps_the_contract(
    postgres: PostgresServer, administrator: Administrator, case: Case
) -> None:
    asyncio.run(prove(case, PostgresSubject(postgres.url, administrator)))


@pytest.mark.parametrize("case", SHARED_CONTRACT, ids=lambda case: case.__name__)
def test_several_gateways_keep_the_contract(
    postgres: PostgresServer, administrator: Administrator, case: SharedCase
) -> None:
    asyncio.run(prove(case, PostgresSubject(postgres.url, administrator)))
