"""The PostgreSQL engine satisfies the contract, case by case, also with several gateways."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strongroom.testing.contract import contents, failures
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

_APART = (
    contents.bodies_of_every_size_come_back,
    contents.a_discarded_content_is_gone,
    contents.a_pinned_content_outlives_its_owner,
    contents.a_damaged_content_is_never_answered,
    contents.a_long_damaged_content_is_found_when_all_of_it_is_read,
    failures.a_body_lives_exactly_if_its_commit_does,
)


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


@pytest.mark.parametrize("case", _APART, ids=lambda case: case.__name__)
def test_an_engine_with_bodies_apart_keeps_it_too(
    postgres: PostgresServer, administrator: Administrator, tmp_path: Path, case: SharedCase
) -> None:
    """`make proof` runs all cases: tests/proof/postgres/test_bodies_apart.py."""
    asyncio.run(prove(case, PostgresSubject(postgres.url, administrator, bodies=tmp_path)))
