"""The long proof of a bad network between one of two gateways and the database.

Traffic is delayed, held back, reset and lost for short times. In the second part the network is
away for so long that the gateway is declared dead. Namespaces of the kernel are not used: a proxy
does the same to each connection, and needs no rights.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.coordination.proxy import Proxy
from tests.effort import scaled
from tests.engines.postgres.faults import NETWORK_FAULTS
from tests.engines.postgres.servers import quick_server
from tests.proof.gateways.rounds import Measured, prove
from tests.proof.gateways.serving import Serving

ROUNDS = scaled(100)
LONG_ROUNDS = scaled(30)
FAULT_S = 0.7
AWAY_S = 14.0
END_S = 15.0


@contextmanager
def one_behind_a_proxy(folder: Path) -> Iterator[tuple[Serving, Proxy]]:
    """Two gateways, the second one behind a proxy."""
    with quick_server(folder) as server, Proxy(server.address) as proxy:
        far = server.url.replace(server.address, proxy.address)
        with Serving([server.url, far], folder) as serving:
            yield serving, proxy


@pytest.mark.timeout(2400)
def test_a_bad_network_loses_nothing(tmp_path: Path) -> None:
    with one_behind_a_proxy(tmp_path) as (serving, proxy):

        def fault(seed: int) -> Measured:
            for disturb in random.Random(seed).sample(NETWORK_FAULTS, 4):
                disturb(proxy)
                time.sleep(FAULT_S)
                proxy.heal()
            return {}

        prove("bad network", serving, ROUNDS, fault)


@pytest.mark.timeout(2400)
def test_a_gateway_whose_network_is_away_ends(tmp_path: Path) -> None:
    with one_behind_a_proxy(tmp_path) as (serving, proxy):

        def fault(seed: int) -> Measured:
            (Proxy.hold if seed % 2 else Proxy.cut)(proxy)
            time.sleep(AWAY_S)
            proxy.heal()
            assert serving.has_ended(1, END_S), "it did not notice that it was declared dead"
            serving.start(1)
            return {}

        prove("network away for 14 s", serving, LONG_ROUNDS, fault)
