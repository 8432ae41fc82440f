"""The long proof of fencing: a gateway stands still for 15 s, and goes on afterwards.

The other one has taken over by then. Nothing that was acknowledged is lost, and the late commit is
refused.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.effort import scaled
from tests.engines.postgres import faults
from tests.engines.postgres.load import progress
from tests.engines.postgres.servers import fresh_schema, quick_server

ROUNDS = scaled(30)
STOPPED_S = 15.0


@pytest.mark.timeout(2400)
def test_a_late_commit_is_refused(tmp_path: Path) -> None:
    with quick_server(tmp_path) as server:
        for number in range(ROUNDS):
            folder = tmp_path / str(number)
            folder.mkdir()
            refused = faults.gateway_stopped_before_its_commit(server.url, fresh_schema(), folder)
            assert asyncio.run(refused)


@pytest.mark.timeout(2400)
def test_a_gateway_stopped_under_load_loses_nothing(tmp_path: Path) -> None:
    with quick_server(tmp_path) as server, progress("stopped gateways") as add:
        for number in range(ROUNDS):
            folder = tmp_path / f"load-{number}"
            folder.mkdir()
            verdict, has_ended = asyncio.run(
                faults.gateway_stopped_under_load(server.url, fresh_schema(), folder, STOPPED_S)
            )
            add(verdict)
            assert verdict.is_exact, verdict
            assert has_ended, "it did not notice that it was declared dead"
