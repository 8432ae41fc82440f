"""The long proof of single faults: the server killed, a gateway killed, a bad network."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.coordination.servers import PostgresServer
from tests.effort import scaled
from tests.engines.postgres import faults
from tests.engines.postgres.load import Verdict, progress
from tests.engines.postgres.servers import fresh_schema, quick_server

ROUNDS = scaled(100)
Round = Callable[[PostgresServer, str, int, Path], Coroutine[Any, Any, Verdict]]
FAULTS: dict[str, Round] = {
    "server killed": lambda server, schema, seed, _: faults.server_killed(server, schema, seed),
    "bad network": lambda server, schema, seed, _: faults.network_disturbed(server, schema, seed),
    "gateway killed": lambda server, schema, seed, folder: faults.gateway_killed(
        server.url, schema, folder, seed
    ),
}


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_acknowledged_is_lost(tmp_path: Path, fault: str) -> None:
    first = random.SystemRandom().getrandbits(31)
    with quick_server(tmp_path) as server, progress(f"{fault}, seed {first}") as add:
        for seed in range(first, first + ROUNDS):
            folder = tmp_path / str(seed)
            folder.mkdir()
            verdict = asyncio.run(FAULTS[fault](server, fresh_schema(), seed, folder))
            add(verdict)
            assert verdict.is_exact, f"seed {seed}: {verdict}"
