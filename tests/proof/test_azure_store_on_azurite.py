"""The Azure store keeps its contract on Azurite too, not only on this project's own server."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from benchmarks.servers import AZURITE, Server, azurite_command, install_azurite
from strongroom import coordination as coord
from tests.coordination.conformance import CASES

MODES = ("etag", "lease")


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    install_azurite()
    server = Server(AZURITE, azurite_command, tmp_path_factory.mktemp("azurite") / "data")
    server.start()
    yield f"http://127.0.0.1:{server.ports[0]}/devstoreaccount1"
    server.stop()


def url_of(endpoint: str, mode: str) -> str:
    escaped = quote(endpoint, safe="")
    return f"azure://devstoreaccount1/coordination?mode={mode}&endpoint={escaped}"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mode", MODES)
def test_contract(endpoint: str, mode: str, case: str) -> None:
    store = coord.open_store(url_of(endpoint, mode))
    CASES[case](store)
    store.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_dead_holder_is_replaced(endpoint: str, mode: str) -> None:
    """The first one closes its client and never gives back; the service's clock is a real one."""
    name = f"dead-{mode}"
    client = coord.connect(url_of(endpoint, mode))
    lost = client.lock(name, ttl=15).acquire()
    client.close()
    with pytest.raises(coord.LockLost):
        lost.check()
    with coord.connect(url_of(endpoint, mode)) as other:
        assert other.lock(name, ttl=15).try_acquire() is None
        with other.lock(name, ttl=15, wait=60) as held:
            assert held.fence == lost.fence + 1
