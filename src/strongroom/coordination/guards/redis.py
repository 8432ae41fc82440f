"""Keys of a Redis that refuse writes with an old fence.

    guard = held.guard.redis("redis://host/0")
    guard.set("report:today", data)
    guard.call("HSET", "totals", "orders", 17)

One key for each lock keeps the highest fence seen; a script compares and writes in one step. The
fence is as durable as the server's data. A server that fails over or loses its data may lose the
fence as well, and then lets an old holder write. Source: Redis documentation, "Scripting with Lua".
Must not live here: locks, the protocol (stores/redis/wire.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.errors import CorruptRecord, OutcomeUnknown, Unsupported
from strongroom.coordination.guards.fencing import Fenced, FencedOut
from strongroom.coordination.schema.names import escape
from strongroom.coordination.stores.redis.address import (
    address_of,
    pool_of,
    run_script,
    store_error,
)
from strongroom.coordination.stores.redis.wire import RedisError, Reply

# Redis undoes nothing after an error in a script. So a step that may fail comes before the fence is
# raised, or changes nothing.
_FENCE: Final = """
local seen = redis.call('GET', KEYS[1])
if seen and not tonumber(seen) then return {'corrupt', seen} end
if seen and tonumber(seen) > tonumber(ARGV[1]) then return {'late', seen} end
if not seen or tonumber(seen) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
"""
_CLAIM: Final = _FENCE + "return {'done', 0}"
_SET: Final = (
    _FENCE
    + """
for at = 2, #KEYS do
    if ARGV[2] == '0' then redis.call('SET', KEYS[at], ARGV[at + 1])
    else redis.call('SET', KEYS[at], ARGV[at + 1], 'PX', ARGV[2]) end
end
return {'done', #KEYS - 1}"""
)
_DELETE: Final = (
    _FENCE
    + """
local count = 0
for at = 2, #KEYS do count = count + redis.call('DEL', KEYS[at]) end
return {'done', count}"""
)
_CALL: Final = _FENCE + "return {'done', redis.call(unpack(ARGV, 2))}"
_FENCE_MAX: Final = 2**53 - 1  # Lua's numbers are exact up to this one


class RedisGuard:
    """The guard of one Redis, for one hold. Any thread may use it.

    Arguments:
        held: a handle, or a `Token`.
        url: redis://user:password@host:6379/0 or rediss://, as for `connect`. Keys are used as they
            are given; the fence's key is `<prefix>fence:<name>`.
        timeout_s: for one write.
        clock: for tests.

    Raises:
        Unsupported: the URL cannot be understood, or the fence is too large for a script.
    """

    def __init__(
        self,
        held: Fenced,
        url: str,
        *,
        timeout_s: float = 10.0,
        clock: Clocks | None = None,
    ) -> None:
        if not 0 <= held.fence <= _FENCE_MAX:
            raise Unsupported(f"the fence {held.fence} is too large for a script of Redis")
        self._held, self._timeout_s = held, timeout_s
        self._clock = clock or SystemClocks()
        self._address = address_of(url)
        self._key = f"{self._address.prefix}fence:{escape(held.name)}"
        self._pool = pool_of(self._address, self._clock)

    def claim(self) -> None:
        """Make the server refuse every earlier holder from now on, without another write.

        Raises:
            LockLost: the hold is known to be over.
            FencedOut: the server has seen a later holder; nothing was written.
            OutcomeUnknown: no answer came: the claim may have been applied, or may be later.
            StoreUnavailable, StoreRefused: the server did not apply the claim.
            CorruptRecord: the value of the fence's key is not a fence.
        """
        self._run(_CLAIM, (), ())

    def set(self, key: str, value: str | bytes | int, expires_s: float | None = None) -> None:
        """Write a key. Arguments and errors: as `set_all`."""
        self.set_all({key: value}, expires_s)

    def set_all(
        self, values: Mapping[str, str | bytes | int], expires_s: float | None = None
    ) -> None:
        """Write several keys in one step.

        Arguments:
            values: the new values by key.
            expires_s: the keys expire after so many seconds; None: never.

        Raises: as `claim`.
        """
        if expires_s is not None and expires_s <= 0:
            raise Unsupported(f"a key cannot end after {expires_s:g} s")
        ends_ms = 0 if expires_s is None else max(1, round(expires_s * 1000))
        self._run(_SET, tuple(values), (ends_ms, *values.values()))

    def delete(self, *keys: str) -> int:
        """Delete keys in one step; return how many existed. Raises: as `claim`."""
        count = self._run(_DELETE, keys, ())
        assert isinstance(count, int)
        return count

    def call(self, command: str, *words: str | bytes | int) -> Reply:
        """Run any one command that a script may run, like `call("HSET", "key", "field", 1)`.

        Returns: the reply: bytes, int, a list of such, or None.

        Raises: as `claim`. If the command itself is refused, earlier holders are refused from then
        on nevertheless.
        """
        return self._run(_CALL, (), (command, *words))

    def close(self) -> None:
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(
        self, script: str, keys: tuple[str, ...], words: tuple[str | bytes | int, ...]
    ) -> Reply:
        self._held.check()
        until_s = self._clock.monotonic_s() + self._timeout_s
        sent = (self._held.fence, *words)
        try:
            with self._pool.lend(until_s) as connection:
                reply = run_script(connection, until_s, script, (self._key, *keys), sent)
        except RedisError as error:
            raise store_error(self._address, error) from error
        except OSError as error:
            reason = str(error) or type(error).__name__
            raise OutcomeUnknown(f"{self._address.display_url}: {reason}") from error
        return self._checked_reply(reply)

    def _checked_reply(self, reply: Reply) -> Reply:
        # Redis ends a script's list at its first nil.
        verdict, *rest = reply if isinstance(reply, list) else (None,)
        highest_fence = rest[0] if rest else None
        if verdict == b"done":
            return highest_fence
        if verdict == b"late" and isinstance(highest_fence, bytes) and highest_fence.isdigit():
            raise FencedOut(
                self._held.name, self._held.fence, int(highest_fence), self._address.display_url
            )
        raise CorruptRecord(self._key, repr(highest_fence).encode(), "a fence")
