"""Participants that open one Azure container in different modes still exclude each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest

from strongroom import coordination as coord
from strongroom.testing import InProcessServer
from tests.coordination.test_azure_store import MODES, url_of


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer.start() as running:
        yield running


@pytest.mark.parametrize("fair", [False, True])
def test_a_hold_of_etag_mode_is_no_free_lock_in_lease_mode(
    server: InProcessServer, fair: bool
) -> None:
    urls = [url_of(server, mode, f"both-{fair}".lower()) for mode in MODES]
    with coord.connect(urls[0]) as etag, coord.connect(urls[1]) as lease:
        with etag.lock("jobs", ttl=60) as held:
            assert lease.lock("jobs", ttl=60, fair=fair).try_acquire() is None
            seen = lease.show("jobs")
            assert seen is not None and seen.held and seen.left_s > 60
            with pytest.raises(coord.CoordTimeout) as refused:
                # It enters the queue if there is one, and leaves it; the hold does not change.
                lease.lock("jobs", ttl=60, wait=0.3, fair=fair).acquire()
            assert refused.value.holder
            assert lease.lock("jobs", ttl=60).try_acquire() is None
            held.check()
        with lease.lock("jobs", ttl=60, wait=5) as next_one:
            assert next_one.fence == held.fence + 1


def test_a_dead_holder_of_etag_mode_is_waited_out_in_lease_mode(server: InProcessServer) -> None:
    with coord.connect(url_of(server, "etag", "dead-etag")) as etag:
        held = etag.lock("jobs", ttl=1).acquire()
    assert not held.remaining()  # closed, and not released
    with coord.connect(url_of(server, "lease", "dead-etag")) as lease:
        assert lease.lock("jobs", ttl=15).try_acquire() is None
        with lease.lock("jobs", ttl=15, wait=30) as next_one:
            assert next_one.fence == held.fence + 1


@pytest.mark.parametrize("fair", [False, True])
def test_a_lease_is_a_hold_in_etag_mode(server: InProcessServer, fair: bool) -> None:
    urls = [url_of(server, mode, f"lease-{fair}".lower()) for mode in MODES]
    with coord.connect(urls[0]) as etag, coord.connect(urls[1]) as lease:
        with lease.lock("jobs", ttl=15) as held:
            store = etag.store
            sent: list[str] = []

            def note(self: Any, *_: Any, **__: Any) -> None:
                sent.append(self.endpoint)  # clients of other tests may still write elsewhere

            with (
                patch.object(type(store), "cas", note),
                pytest.raises(coord.CoordTimeout) as refused,
            ):
                etag.lock("jobs", ttl=15, wait=0.5, fair=fair).acquire()
            assert refused.value.holder and str(getattr(store, "endpoint", "")) not in sent, (
                "whatever it wrote would be refused"
            )
            held.check()
        with etag.lock("jobs", ttl=15, wait=5, fair=fair) as next_one:
            assert next_one.fence == held.fence + 1
