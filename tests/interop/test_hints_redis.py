"""Gates with hints over a real Redis: PUBLISH wakes the waiters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strongroom.coordination import Unsupported
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.hints import Hints, multicast
from strongroom.coordination.hints.redis import RedisBus
from strongroom.coordination.stores.redis.address import address_of, open_session
from strongroom.testing.ports import HOST, free_port
from tests.coordination import hint_trials, servers

PASSWORD, ESCAPED = "s3cret/%@:word", "s3cret%2F%25%40%3Aword"
_clock = SystemClocks()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.RedisServer]:
    folder: Path = tmp_path_factory.mktemp("redis")
    with servers.redis_server(folder, "--requirepass", PASSWORD) as running:
        yield running


@pytest.fixture
def make(server: servers.RedisServer) -> Callable[[], Hints]:
    return lambda: multicast(f"redis://:{ESCAPED}@{server.address}")


def test_fifty_nodes_are_released_by_the_message(make: Callable[[], Hints]) -> None:
    hint_trials.all_are_released_by_the_message(make)


def test_tasks_are_released_by_the_message(make: Callable[[], Hints]) -> None:
    hint_trials.tasks_are_released_by_the_message(make)


def test_lost_messages_strand_nobody(make: Callable[[], Hints]) -> None:
    hint_trials.nobody_is_stranded_by_lost_messages(make)


def test_a_wrong_password_is_refused(
    server: servers.RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    hints = multicast(f"redis://:wr0ng%2Fword@{server.address}")
    hint_trials.a_wrong_secret_is_refused(hints, "wr0ng", caplog)


def test_a_server_that_restarts_strands_nobody(
    server: servers.RedisServer, make: Callable[[], Hints], caplog: pytest.LogCaptureFixture
) -> None:
    hint_trials.a_restart_strands_nobody(make, server.kill, server.restart, caplog)


def test_whoever_is_cut_off_listens_again_and_looks(
    server: servers.RedisServer, make: Callable[[], Hints]
) -> None:
    hints = hint_trials.Watched(make())
    stop = hints.subscribe("gate/cut", lambda: None)
    hint_trials.until(lambda: hints.heard_count == 1, "it does not listen")
    until_s = _clock.monotonic_s() + 60
    url = f"redis://:{ESCAPED}@{server.address}"
    admin = open_session(address_of(url), _clock, until_s)
    assert admin.call(until_s, "CLIENT", "KILL", "TYPE", "pubsub") == 1
    hint_trials.until(lambda: hints.heard_count == 2, "nobody said that it should look")
    make().publish("gate/cut")
    hint_trials.until(lambda: hints.heard_count == 3, "it does not listen again")
    stop()
    hint_trials.until(
        lambda: admin.call(until_s, "CLIENT", "LIST", "TYPE", "pubsub") == b"",
        "a connection stays open",
    )
    admin.close()


def test_no_server_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    hints = multicast(f"redis://:{ESCAPED}@{HOST}:{free_port()}")
    hint_trials.a_bus_that_is_away_is_reported_once(hints, caplog)
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("end", ["h:port", "h/name", "", "h?nonsense=1", "h?ssl_certfile=x"])
def test_urls_that_cannot_be_read_keep_their_secret(end: str) -> None:
    with pytest.raises(Unsupported) as refusal:
        multicast(f"redis://:s3cret@{end}")
    assert "s3cret" not in str(refusal.value)


def test_a_bus_is_called_by_its_host_alone() -> None:
    assert RedisBus(address_of(f"rediss://app:{ESCAPED}@h:1/3")).display_url == "rediss://h:1"
