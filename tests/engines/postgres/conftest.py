"""The server that all tests of this folder share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.coordination.servers import PostgresServer
from tests.engines.postgres.apart import Apart, Trial
from tests.engines.postgres.servers import Administrator, quick_server


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A PostgreSQL, one for each process of tests; each store has a schema of its own in it."""
    with quick_server(tmp_path_factory.mktemp("postgres"), "-c", "max_connections=200") as server:
        yield server


@pytest.fixture(scope="session")
def administrator(postgres: PostgresServer) -> Iterator[Administrator]:
    """A superuser's session at that server."""
    session = Administrator(postgres.url)
    yield session
    session.close()


@pytest.fixture
def attempt(
    postgres: PostgresServer, administrator: Administrator, tmp_path: Path
) -> Callable[[Trial], None]:
    """Run a trial with a fresh store whose long bodies lie in a folder."""

    def run(trial: Trial) -> None:
        async def whole() -> None:
            subject = Apart(postgres.url, administrator, tmp_path)
            await subject.start()
            try:
                await trial(subject)
            finally:
                await subject.stop()

        asyncio.run(whole())

    return run
