"""A hold whose end lies too far ahead, because the server's clock was set back after the acquire.

Lives here: the required behaviour of every store whose clock is a wall clock. Must not live here:
the creation of such a record (the tests of each store).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from strongroom import coordination as coord
from strongroom.coordination.effects import Entry
from tests.coordination.recipe_trials import fresh_name, until

TTL_S: Final = 1.0
Ahead = Callable[[str], None]
"""Makes the hold of a lock's key end an hour later, as if it had been taken with such a clock."""


def ends_in_s(client: coord.Client, name: str) -> float:
    entry = client.store.get(f"lock/{name}", 5.0)
    assert isinstance(entry, Entry) and entry.expires_in_s is not None
    return entry.expires_in_s


def a_dead_holder_is_replaced_but_not_at_first_sight(url: str, ahead: Ahead) -> None:
    name = fresh_name()
    with coord.connect(url) as dead:
        fence = dead.lock(name, ttl=TTL_S).acquire().fence
    with coord.connect(url) as taker:
        ahead(f"lock/{name}")
        assert ends_in_s(taker, name) > 3000
        assert taker.lock(name, ttl=TTL_S).try_acquire() is None
        with taker.lock(name, ttl=TTL_S, wait=60) as held:
            assert held.fence == fence + 1
            assert 0 < ends_in_s(taker, name) <= TTL_S


def a_living_holder_puts_its_end_right(url: str, ahead: Ahead) -> None:
    name = fresh_name()
    with coord.connect(url) as holder, coord.connect(url) as taker:
        with holder.lock(name, ttl=TTL_S) as held:
            ahead(f"lock/{name}")
            assert taker.lock(name, ttl=TTL_S).try_acquire() is None
            until(lambda: ends_in_s(taker, name) <= TTL_S, "the end stays wrong")
            assert taker.lock(name, ttl=TTL_S).try_acquire() is None
            held.check()
        with taker.lock(name, ttl=TTL_S, wait=60) as next_one:
            assert next_one.fence == held.fence + 1


CLOCK_TRIALS: Final[dict[str, Callable[[str, Ahead], None]]] = {
    trial.__name__: trial
    for trial in (
        a_dead_holder_is_replaced_but_not_at_first_sight,
        a_living_holder_puts_its_end_right,
    )
}
