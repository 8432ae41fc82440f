"""Fixtures for pytest: a running server, its connection string, its clock.

Lives here: fixtures only. pytest loads this module automatically where Strongroom is installed. So
the module imports the server only when a test uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from strongroom.testing.server import InProcessServer, ServerClock


@pytest.fixture(scope="session")
def strongroom_server() -> Iterator[InProcessServer]:
    """Return a server in memory with a movable clock, shared by the whole test run."""
    from strongroom.testing.server import InProcessServer

    with InProcessServer.start() as server:
        yield server


@pytest.fixture(scope="session")
def strongroom_connection_string(strongroom_server: InProcessServer) -> str:
    """Return a connection string of the development account, as every Azure SDK accepts it."""
    return strongroom_server.connection_string


@pytest.fixture
def strongroom_clock(strongroom_server: InProcessServer) -> ServerClock:
    """Return the server's clock: `strongroom_clock.advance(60)` lets a minute pass at once."""
    return strongroom_server.clock
