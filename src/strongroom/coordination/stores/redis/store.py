"""Redis as a store: a hash per key, a script per operation.

Lives here: `RedisStore`. Scripts run one at a time, so each operation is atomic. The hash holds the
value, the note, a version, and the hold with its end by the server's clock. The client chooses the
version at random, so a server that lost its memory cannot repeat it. The hold has no key of its
own, which could be evicted alone. The store promises only "efficiency". Replication is
asynchronous, so a failover may lose holds and fences alike. Source: Redis documentation, "Scripting
with Lua", "Pub/Sub", "TIME". Must not live here: the protocol (redis/wire.py), sessions
(redis/address.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.effects import (
    CONFLICT,
    Applied,
    CasOutcome,
    Entry,
    LeaseTerms,
    Unknown,
    Watched,
)
from strongroom.coordination.store import SET_BACK, AsyncStore, Promises
from strongroom.coordination.stores.connections.listening import (
    ATTEMPT_S,
    NotificationHub,
    Subscriber,
    read_timeout_s,
    unavailable,
    watch_key,
)
from strongroom.coordination.stores.connections.listening_aio import ListeningAio
from strongroom.coordination.stores.redis.address import (
    RedisAddress,
    address_of,
    open_session,
    pool_of,
    run_script,
    store_error,
)
from strongroom.coordination.stores.redis.wire import RedisError, Reply
from strongroom.coordination.stores.threaded_store import StoreBase

# PUBLISH comes before the write: a failed script is not rolled back, so the write is last.
_CAS: Final = """
local found = redis.call('HMGET', KEYS[1], 'version', 'holder', 'ends_us')
if (found[1] or '') ~= ARGV[1] then return false end
local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local action, nonce, holder = ARGV[5], ARGV[6], found[2] or ''
local alive = holder ~= '' and tonumber(found[3]) > now_us
if action == 'acquire' and alive and holder ~= nonce then return false end
if action == 'renew' and not (alive and holder == nonce) then return false end
if action == 'release' and holder ~= nonce then return false end
local write = {'HSET', KEYS[1], 'version', ARGV[2], 'value', ARGV[3], 'note', ARGV[4]}
if action == 'acquire' or action == 'take_over' or action == 'hand_over'
    or action == 'renew' then
    holder = nonce
    write[#write + 1] = 'ends_us'
    write[#write + 1] = string.format('%.0f', now_us + tonumber(ARGV[7]))
elseif action ~= '' then
    holder = ''
end
write[#write + 1] = 'holder'
write[#write + 1] = holder
redis.call('PUBLISH', KEYS[1], '')
redis.call(unpack(write))
return 1"""
_DELETE: Final = """
if redis.call('HGET', KEYS[1], 'version') ~= ARGV[1] then return false end
redis.call('PUBLISH', KEYS[1], '')
redis.call('DEL', KEYS[1])
return 1"""
_GET: Final = """
local found = redis.call('HMGET', KEYS[1], 'value', 'version', 'note', 'holder', 'ends_us')
local left_us = 0
if found[4] and found[4] ~= '' then
    local time = redis.call('TIME')
    left_us = tonumber(found[5]) - (tonumber(time[1]) * 1000000 + tonumber(time[2]))
end
return {found[1], found[2], found[3], string.format('%.0f', left_us)}"""


class RedisStore(StoreBase):
    """One Redis server and one key prefix. Thread-safe.

    Arguments:
        clock: measures time limits, and generates versions.
    """

    def __init__(self, address: RedisAddress, clock: Clocks | None = None) -> None:
        self._address, self.clock = address, clock or SystemClocks()
        self.after_fork()

    def get(self, key: str, timeout_s: float) -> Entry | None:
        found = self._run(_GET, key, (), timeout_s)
        if not isinstance(found, list) or len(found) != 4:
            raise unavailable(ConnectionError("the reply is not that of our script"))
        value, version, note, left_us = found
        if version is None:
            return None
        assert isinstance(value, bytes) and isinstance(version, bytes)
        assert isinstance(note, bytes) and isinstance(left_us, bytes)
        return Entry(value, version.decode(), int(left_us) / 1e6, note.decode())

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        if expected == "":
            return CONFLICT  # never a version; to the script, an empty text means absent
        # A HAND_OVER compares only the version: whoever took the hold since has changed it.
        action, ttl_s, nonce = ("", 0.0, "") if lease is None else (lease[0].value, *lease[1:3])
        version = self.clock.nonce()
        words = (expected or "", version, value, note, action, nonce, round(ttl_s * 1e6))
        return self._write(_CAS, key, words, version, timeout_s)

    def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        return self._write(_DELETE, key, (expected,), expected, timeout_s)

    def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        until_s = self.clock.monotonic_s() + timeout_s
        start, found, cursor = self._key(""), set[str](), b"0"
        pattern = "".join(f"\\{sign}" if sign in "*?[]\\^" else sign for sign in start + prefix)
        try:
            with self._pool.lend(until_s) as connection:
                while True:
                    reply = connection.call(
                        until_s, "SCAN", cursor, "MATCH", f"{pattern}*", "COUNT", 1000
                    )
                    cursor, names = _page(reply)
                    found.update(name.decode().removeprefix(start) for name in names)
                    if cursor == b"0":
                        return sorted(found)
        except RedisError as error:
            raise store_error(self._address, error) from error
        except OSError as error:
            raise unavailable(error) from error

    def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        subscriber = Subscriber()
        with self.registered(key, subscriber):
            return watch_key(
                self.clock,
                subscriber,
                lambda: self.get(key, read_timeout_s(timeout_s)),
                version,
                timeout_s,
            )

    def registered(self, key: str, subscriber: Subscriber) -> AbstractContextManager[None]:
        return self._hub.registered(self._key(key), subscriber)

    def aio(self) -> AsyncStore:
        return ListeningAio(self)

    def promises(self) -> Promises:
        return Promises(
            store="Redis",
            mutual_exclusion="efficiency",
            assumption="the server neither fails over nor loses its memory, and its wall clock is"
            " not set forward",
            fencing="best-effort",
            watch="push",
            durable=False,
            scope="network",
            server_lease=True,
            poll_min_s=0.05,
            poll_max_s=1.0,
            notes=(
                "replication is asynchronous: a failover can forget the hold and the fence",
                "what was answered survives a crash only with appendonly and appendfsync always",
                "keys must not be evicted (maxmemory-policy noeviction)",
                SET_BACK,
            ),
        )

    def after_fork(self) -> None:
        # The parent uses its connections; closing them in the child sends nothing on them.
        self._pool = pool_of(self._address, self.clock)
        self._hub = NotificationHub(self._listen, self.clock)

    def close(self) -> None:
        self._hub.close()
        self._pool.close()

    def _key(self, key: str) -> str:
        return f"{self._address.prefix}key:{key}"

    def _listen(self) -> RedisNotifications:
        return RedisNotifications(self._address, self.clock)

    def _run(
        self, script: str, key: str, words: tuple[str | bytes | int, ...], timeout_s: float
    ) -> Reply:
        until_s = self.clock.monotonic_s() + timeout_s
        try:
            with self._pool.lend(until_s) as connection:
                return run_script(connection, until_s, script, (self._key(key),), words)
        except RedisError as error:
            raise store_error(self._address, error) from error
        except OSError as error:
            raise unavailable(error) from error

    def _write(
        self,
        script: str,
        key: str,
        words: tuple[str | bytes | int, ...],
        version: str,
        timeout_s: float,
    ) -> CasOutcome:
        until_s = self.clock.monotonic_s() + timeout_s
        try:
            with self._pool.lend(until_s) as connection:
                reply = run_script(connection, until_s, script, (self._key(key),), words)
        except RedisError as error:
            raise store_error(self._address, error) from error
        except OSError as error:
            return Unknown(str(error) or type(error).__name__)
        return CONFLICT if reply is None else Applied(version)


def _page(reply: Reply) -> tuple[bytes, list[bytes]]:
    if isinstance(reply, list) and len(reply) == 2:
        cursor, names = reply
        if isinstance(cursor, bytes) and isinstance(names, list):
            return cursor, [name for name in names if isinstance(name, bytes)]
    raise ConnectionError("the reply is not that of SCAN")


class RedisNotifications:
    """A subscribed connection; see `listening.NotificationConnection`.

    Topics are names of channels.
    """

    def __init__(self, address: RedisAddress, clock: Clocks) -> None:
        self._address, self._clock = address, clock
        self._connection = open_session(address, clock, clock.monotonic_s() + ATTEMPT_S)
        self._received_channels: list[str] = []

    def fileno(self) -> int:
        return self._connection.fileno()

    def subscribe(self, topic: str) -> None:
        self._change_subscription("SUBSCRIBE", topic)

    def unsubscribe(self, topic: str) -> None:
        self._change_subscription("UNSUBSCRIBE", topic)

    def received(self) -> list[str]:
        while self._connection.has_more():
            self._receive(self._clock.monotonic_s() + ATTEMPT_S)
        found, self._received_channels = self._received_channels, []
        return found

    def close(self) -> None:
        self._connection.close()

    def _change_subscription(self, command: str, topic: str) -> None:
        until_s = self._clock.monotonic_s() + ATTEMPT_S
        self._connection.send(until_s, command, topic)
        while self._receive(until_s) != command.lower().encode():
            pass  # messages may arrive before the reply

    def _receive(self, until_s: float) -> Reply:
        try:
            reply = self._connection.receive(until_s)
        except RedisError as error:
            raise store_error(self._address, error) from error
        if not isinstance(reply, list) or len(reply) != 3:
            raise ConnectionError("the reply is not that of a subscription")
        kind, channel, _ = reply
        if kind == b"message" and isinstance(channel, bytes):
            self._received_channels.append(channel.decode("utf-8", "replace"))
        return kind


def open_url(url: str, query: Mapping[str, str]) -> RedisStore:
    """Return the store in a Redis; for the URL and its query see `address.address_of`."""
    return RedisStore(address_of(url, query))
