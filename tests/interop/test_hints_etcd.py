"""Gates with hints over a real etcd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strongroom.coordination.client import Client
from strongroom.coordination.hints import Hints, multicast
from strongroom.coordination.hints.etcd import EtcdBus
from strongroom.coordination.stores.etcd.address import address_of
from strongroom.testing.ports import HOST, free_port
from tests.coordination import hint_trials
from tests.coordination.servers import EtcdCluster, etcd_cluster
from tests.interop.etcd_users import CHEAP, ESCAPED, with_users


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("etcd"), 1, *CHEAP) as running:
        with_users(running)
        yield running


@pytest.fixture
def make(cluster: EtcdCluster) -> Callable[[], Hints]:
    return lambda: multicast(f"etcd://app:{ESCAPED}@{cluster.addresses}")


def test_fifty_nodes_are_released_by_the_message(make: Callable[[], Hints]) -> None:
    hint_trials.all_are_released_by_the_message(make)


def test_tasks_are_released_by_the_message(make: Callable[[], Hints]) -> None:
    hint_trials.tasks_are_released_by_the_message(make)


def test_lost_messages_strand_nobody(make: Callable[[], Hints]) -> None:
    hint_trials.nobody_is_stranded_by_lost_messages(make)


def test_a_wrong_password_is_refused(
    cluster: EtcdCluster, caplog: pytest.LogCaptureFixture
) -> None:
    hints = multicast(f"etcd://app:wr0ng%2Fword@{cluster.addresses}")
    hint_trials.a_wrong_secret_is_refused(hints, "wr0ng", caplog)


def test_a_cluster_that_restarts_strands_nobody(
    cluster: EtcdCluster, make: Callable[[], Hints], caplog: pytest.LogCaptureFixture
) -> None:
    hint_trials.a_restart_strands_nobody(
        make, lambda: cluster.kill(0), lambda: cluster.restart(0), caplog
    )


def test_a_member_that_dies_strands_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The other two members continue, and clients listen to them."""
    with etcd_cluster(tmp_path, 3) as three:
        store = hint_trials.Polled(hint_trials.NEVER_S)
        waiters = hint_trials.Waiters(store, lambda: multicast(three.url), 8, "g")
        waiters.listen()
        heard = [hints.heard_count for hints in waiters.hints]
        three.kill(0)
        hint_trials.until(
            lambda: all(
                hints.heard_count > count for hints, count in zip(waiters.hints, heard, strict=True)
            ),
            "not everybody listens to another",
        )
        three.leader()
        Client(store).gate("g", multicast(three.url)).open("x")
        waiters.join()
        assert waiters.found == ["x"] * 8


def test_no_cluster_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    hints = multicast(f"etcd://app:{ESCAPED}@{HOST}:{free_port()}")
    hint_trials.a_bus_that_is_away_is_reported_once(hints, caplog)
    assert "s3cret" not in caplog.text


def test_a_place_holds_no_secret() -> None:
    bus = EtcdBus(address_of(f"etcd://app:{ESCAPED}@one:1,two/apps", {}))
    assert bus.display_url == "etcd://one:1,two:2379"
