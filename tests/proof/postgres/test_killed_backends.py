"""The long proof of exact outcomes: sessions of two gateways are ended every 0.2 s under load.

Half of the time a session is ended inside its commit. Of each increment it is known whether it
happened.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.effort import scaled
from tests.engines.postgres import faults
from tests.engines.postgres.load import progress
from tests.engines.postgres.servers import Administrator, fresh_schema, quick_server

ROUNDS = scaled(100)
SECONDS = 8.0


@pytest.mark.timeout(2400)
def test_ended_sessions_lose_and_repeat_nothing(tmp_path: Path) -> None:
    first, ended = random.SystemRandom().getrandbits(31), 0
    with quick_server(tmp_path) as server, progress(f"ended sessions, seed {first}") as add:
        administrator = Administrator(server.url)
        for seed in range(first, first + ROUNDS):
            schema = fresh_schema()
            verdict, count = asyncio.run(
                faults.sessions_ended(server.url, schema, administrator, SECONDS, seed)
            )
            add(verdict)
            ended += count
            assert verdict.is_exact, f"seed {seed}: {verdict}"
            assert verdict.unknown == 0, f"seed {seed}: the database was there all the time"
            administrator.run(f"DROP SCHEMA {schema} CASCADE")
        administrator.close()
    print(f"{ended} sessions were ended")
    assert ended > ROUNDS * SECONDS
