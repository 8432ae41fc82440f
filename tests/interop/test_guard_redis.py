"""The guard for Redis on a real server: a script refuses a write with an old fence."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from strongroom import coordination as coord
from strongroom.coordination.clock import SystemClocks
from strongroom.coordination.guards import FencedOut, Token
from strongroom.coordination.guards.redis import RedisGuard
from strongroom.coordination.stores.redis.address import address_of, open_session
from strongroom.coordination.stores.redis.wire import RedisConnection, Reply
from tests.coordination import servers

_clock = SystemClocks()
_LAPS = 20


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.RedisServer]:
    folder: Path = tmp_path_factory.mktemp("redis")
    with servers.redis_server(folder) as server:
        yield server


@pytest.fixture
def plain(running: servers.RedisServer) -> Iterator[RedisConnection]:
    until_s = _clock.monotonic_s() + 60
    connection = open_session(address_of(running.url), _clock, until_s)
    connection.call(until_s, "FLUSHALL")
    yield connection
    connection.close()


def say(plain: RedisConnection, *words: str | bytes | int) -> Reply:
    return plain.call(_clock.monotonic_s() + 10, *words)


def guard(running: servers.RedisServer, fence: int, name: str = "job") -> RedisGuard:
    return RedisGuard(Token(name, fence), running.url)


def test_an_old_fence_is_refused(running: servers.RedisServer, plain: RedisConnection) -> None:
    with guard(running, 1) as old, guard(running, 2) as new, guard(running, 1, "ä b") as other:
        old.set("x", "old")
        new.set_all({"x": b"\x00new", "y": 7})
        with pytest.raises(FencedOut, match=r"fence 1 of 'job'.*fence 2"):
            old.set("x", "late")
        with pytest.raises(FencedOut):
            old.claim()
        with pytest.raises(FencedOut):
            old.delete("x")
        with pytest.raises(FencedOut):
            old.call("INCR", "y")
        assert say(plain, "MGET", "x", "y") == [b"\x00new", b"7"]
        assert new.call("INCR", "y") == 8
        assert new.delete("x", "y", "absent") == 2
        other.set("z", "another lock has a fence of its own")


def test_a_claim_shuts_old_holders_out(running: servers.RedisServer) -> None:
    with guard(running, 3) as old, guard(running, 4) as new:
        new.claim()
        with pytest.raises(FencedOut):
            old.set("x", "late")


def test_commands_and_their_answers(running: servers.RedisServer, plain: RedisConnection) -> None:
    with guard(running, 1) as mine:
        assert mine.call("HSET", "totals", "orders", 17) == 1
        assert mine.call("HGETALL", "totals") == [b"orders", b"17"]
        assert mine.call("GET", "absent") is None
        assert mine.call("SET", "x", b"1") == b"OK"
        with pytest.raises(coord.StoreRefused, match="WRONGTYPE"):
            mine.call("INCR", "totals")
        mine.set("short", "1", expires_s=100)
        left_ms = say(plain, "PTTL", "short")
        assert isinstance(left_ms, int) and 0 < left_ms <= 100_000
        with pytest.raises(coord.Unsupported):
            mine.set("short", "1", expires_s=0)


def test_what_is_no_fence_is_told(running: servers.RedisServer, plain: RedisConnection) -> None:
    for wrong in ("many", "1.5"):
        say(plain, "SET", "strongroom:fence:job", wrong)
        with guard(running, 1) as mine, pytest.raises(coord.CorruptRecord, match=wrong):
            mine.set("x", "1")
    with pytest.raises(coord.Unsupported, match="too large"):
        guard(running, 2**53)


def test_large_fences_are_told_apart(running: servers.RedisServer, plain: RedisConnection) -> None:
    with guard(running, 2**53 - 2) as old, guard(running, 2**53 - 1) as new:
        new.claim()
        with pytest.raises(FencedOut):
            old.claim()


@pytest.mark.parametrize("guarded", [True, False])
def test_stale_writes_are_refused_every_time_and_unguarded_ones_lose_updates(
    running: servers.RedisServer, plain: RedisConnection, guarded: bool
) -> None:
    say(plain, "SET", "counter", 0)
    refused = 0
    for lap in range(_LAPS):
        seen = say(plain, "GET", "counter")  # and here the first one stops for too long
        assert isinstance(seen, bytes)
        for fence in (2 * lap + 2, 2 * lap + 1):
            try:
                if guarded:
                    with guard(running, fence) as mine:
                        mine.set("counter", int(seen) + 1)
                else:
                    say(plain, "SET", "counter", int(seen) + 1)
            except FencedOut:
                refused += 1
    assert refused == (_LAPS if guarded else 0)
    counted, lost = say(plain, "GET", "counter"), 0 if guarded else _LAPS
    assert isinstance(counted, bytes)
    assert (_LAPS if guarded else 2 * _LAPS) - int(counted) == lost


def test_applied_fences_never_go_back(running: servers.RedisServer, plain: RedisConnection) -> None:
    def work(fence: int) -> int:
        with guard(running, fence) as mine:
            for done in range(_LAPS):
                try:
                    mine.call("RPUSH", "applied", fence)
                except FencedOut:
                    return done
        return _LAPS

    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(work, range(1, 7)))
    rows = say(plain, "LRANGE", "applied", 0, -1)
    assert isinstance(rows, list) and len(rows) == sum(done) and done[-1] == _LAPS
    fences = [int(row) for row in rows if isinstance(row, bytes)]
    assert fences == sorted(fences)


def test_a_hold_of_the_same_server(running: servers.RedisServer, plain: RedisConnection) -> None:
    with coord.connect(running.url) as client:
        held = client.lock("job", ttl=15).acquire()
        with held.guard.redis(running.url) as mine:
            mine.set("x", "1")
            held.release()
            with pytest.raises(coord.LockLost):
                mine.set("x", "2")
        with client.lock("job", ttl=15) as second, second.guard.redis(running.url) as mine:
            mine.set("x", "3")
    assert say(plain, "GET", "x") == b"3"


def test_no_answer_is_an_unknown_outcome(running: servers.RedisServer) -> None:
    with RedisGuard(Token("paused", 1), running.url, timeout_s=0.3) as mine:
        mine.claim()
        running.pause()
        try:
            with pytest.raises(coord.OutcomeUnknown):
                mine.set("x", "1")
        finally:
            running.resume()
        mine.set("x", "1")


def test_a_wrong_password_is_not_repeated(running: servers.RedisServer) -> None:
    url = f"redis://app:s3cret@{running.address}"
    with (
        RedisGuard(Token("job", 1), url) as mine,
        pytest.raises(coord.StoreRefused, match="password") as refusal,
    ):
        mine.claim()
    assert "s3cret" not in str(refusal.value)
