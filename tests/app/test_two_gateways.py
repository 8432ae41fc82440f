"""Two gateways of one store, as processes: their answers have one order, and one of them dies.

The long forms are in tests/proof/gateways, with a fault each.
"""

from __future__ import annotations

import time
from pathlib import Path

from tests.over_postgres import database, new_store
from tests.proof.gateways.rounds import Histories
from tests.proof.gateways.serving import Serving
from tests.proof.postgres.http_load import HttpLoad

OPERATIONS = 150


def test_two_gateways_answer_in_one_order_and_lose_nothing_when_one_dies(tmp_path: Path) -> None:
    """B-CWR-01, B-LSE-22, T-WRI-08, T-BAT-02, Q-GET-07."""
    flags = ("--store-schema", str(new_store().schema))
    with Serving([database().url] * 2, tmp_path, flags=flags) as serving:
        histories = Histories(serving.way, "seen", 1, awaits=False)
        while histories.operations() < OPERATIONS:
            time.sleep(0.02)
        histories.stop()
        assert not list(histories.faults(serving.pass_time))
        load = HttpLoad(serving.way, "kept", writers=1)
        load.acknowledges(10)
        serving.kill(0)
        load.acknowledges(10)
        load.stop()
        verdict = load.verdict(serving.gateways[1].services)
        assert verdict.is_exact, verdict
