"""The whole contract in a database that sorts text as a language does, not byte by byte."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from strongroom.testing.engine_contract import CONTRACT, SHARED_CONTRACT, SharedCase, prove
from tests.engines.postgres.servers import Administrator, quick_server
from tests.engines.postgres.subject import PostgresSubject


@pytest.fixture(scope="module")
def icu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Administrator]:
    with quick_server(tmp_path_factory.mktemp("icu"), "-c", "max_connections=200") as server:
        first = Administrator(server.url)
        first.run(
            "CREATE DATABASE icu ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'de-AT' "
            "LOCALE 'C' TEMPLATE template0"
        )
        first.close()
        administrator = Administrator(f"postgresql://postgres@{server.address}/icu")
        yield administrator
        administrator.close()


@pytest.mark.parametrize("case", [*CONTRACT, *SHARED_CONTRACT], ids=lambda case: case.__name__)
def test_the_engine_keeps_the_contract(icu: Administrator, case: SharedCase) -> None:
    asyncio.run(prove(case, PostgresSubject(icu.url, icu)))
