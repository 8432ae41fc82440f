"""Fixtures for pytest: a running server, its connection string, its clock.

Lives here: fixtures only. pytest finds this module by itself where Strongroom is installed. So it
imports the server only when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from strongroom.testing.server import InProcessServer, ServerClock


@pytest.fixture(scope="session")
def strongroom_server() -> Iterator[InProcessServer]:
    """A server in memory with a movable clock, the same for the whole test run."""
    from strongroom.testing.server import InProcessServer

    with InProcessServer.start() as server:
        yield server


@pytest.fixture(scope="session")
def strongroom_connection_string(strongroom_server: InProcessServer) -> str:
    """A connection string of the development account, as every Azure SDK takes it."""
    return strongroom_server.connection_string


@pytest.fixture
def strongroom_clock(strongroom_server: InProcessServer) -> ServerClock:
    """`strongroom_clock.advance(60)`: a minute passes at once, for leases and the like."""
    return strongroom_server.clock
