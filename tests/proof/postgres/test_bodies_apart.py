"""The whole contract over PostgreSQL with bodies in a folder, from 101 bytes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strongroom.testing.engine_contract import CONTRACT, SHARED_CONTRACT, SharedCase, prove
from tests.coordination.servers import PostgresServer
from tests.engines.postgres.servers import Administrator
from tests.engines.postgres.subject import PostgresSubject


@pytest.mark.parametrize("case", [*CONTRACT, *SHARED_CONTRACT], ids=lambda case: case.__name__)
def test_an_engine_with_bodies_apart_keeps_the_contract(
    postgres: PostgresServer, administrator: Administrator, tmp_path: Path, case: SharedCase
) -> None:
    asyncio.run(prove(case, PostgresSubject(postgres.url, administrator, bodies=tmp_path)))
