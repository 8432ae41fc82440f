"""The server that all tests of this folder share."""

from __future__ import annotations

import pytest

from tests.coordination.servers import PostgresServer
from tests.over_postgres import database


@pytest.fixture(scope="session")
def postgres() -> PostgresServer:
    """A PostgreSQL; each store has a schema of its own in it."""
    return database()
