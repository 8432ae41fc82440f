"""Metrics of a gateway to a store in a database; tests/engines/postgres/ has its facts."""

from __future__ import annotations

import math

import msgspec
import pytest

from strongroom.servers.gateway_metrics import GatewayMetrics
from strongroom.servers.telemetry import Telemetry
from strongroom.values import GatewayFacts

_FACTS = GatewayFacts(
    number=3,
    gateways=2,
    heartbeat_age_s=0.25,
    clock_ahead_s=-0.5,
    used_bytes=1000,
    quota_bytes=4000,
    sessions=9,
    commits=((0.01, 4), (math.inf, 5)),
    commits_s=0.75,
    decisions=40,
    clock_doubt_s=0.002,
    awaits_standby=True,
    sessions_refused=6,
    bodies_away=True,
)
_SHOWN = {
    "strongroom_gateway_number": 3,
    "strongroom_gateways": 2,
    "strongroom_gateway_heartbeat_age_seconds": 0.25,
    "strongroom_gateway_clock_ahead_seconds": -0.5,
    "strongroom_store_used_bytes": 1000,
    "strongroom_store_quota_bytes": 4000,
    "strongroom_database_sessions_total": 9,
    'strongroom_commit_seconds_bucket{le="0.01"}': 4,
    "strongroom_commit_seconds_count": 5,
    "strongroom_commit_seconds_sum": 0.75,
    "strongroom_decisions_total": 40,
    "strongroom_gateway_clock_doubt_seconds": 0.002,
    "strongroom_database_standby_awaited": 1,
    "strongroom_database_sessions_refused_total": 6,
    "strongroom_bodies_away": 1,
}


@pytest.mark.parametrize("away", [False, None])
def test_a_folder_of_bodies_is_shown_if_there_is_one(away: bool | None) -> None:
    facts = msgspec.structs.replace(_FACTS, bodies_away=away)
    telemetry = Telemetry(lambda: 0, lambda: 0)
    telemetry.add(GatewayMetrics(lambda: facts))
    lines = telemetry.exposition()[0].decode().splitlines()
    shown = [line for line in lines if line.startswith("strongroom_bodies_away")]
    assert shown == ([] if away is None else ["strongroom_bodies_away 0.0"])


@pytest.mark.parametrize("quota_bytes", [4000, None])
def test_a_gateway_shows_its_facts(quota_bytes: int | None) -> None:
    facts = msgspec.structs.replace(_FACTS, quota_bytes=quota_bytes)
    telemetry = Telemetry(lambda: 0, lambda: 0)
    telemetry.add(GatewayMetrics(lambda: facts))
    lines = telemetry.exposition()[0].decode().splitlines()
    shown = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    for name, value in _SHOWN.items():
        if quota_bytes is None and "quota" in name:
            assert name not in shown
        else:
            assert float(shown[name]) == value
