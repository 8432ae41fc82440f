"""100 trials of `strongroom lock NAME -- command` under each fault, on a real Strongroom.

The command is dead before the lease can expire, soon after a break, and after a kill of `strongroom
lock`. If all of it was stopped past the TTL and continued, no fenced write is accepted.

Every command has a child in its process group and a grandchild that has left it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.lock_faults import (
    WAYS,
    Frozen,
    Store,
    Way,
    began_when_killed_early,
    frozen,
    latencies_broken,
    latencies_killed,
    margins_out_of_reach,
    opened,
)
from tests.cli.lock_trials import spread

TRIALS = 100
BATCH = 20
TTL_S = 3.0
LEASE_TTL_S = 15.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with opened("strongroom-etag", tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.mark.parametrize("way", WAYS)
def test_dead_before_the_lease_can_expire(store: Store, tmp_path: Path, way: Way) -> None:
    margins_s: list[float] = []
    while len(margins_s) < TRIALS:
        margins_s += margins_out_of_reach(store, tmp_path, BATCH, TTL_S, way)
    in_time = sum(margin_s > 0 for margin_s in margins_s)
    print(
        f"store {way}: {in_time} of {len(margins_s)} commands dead in time,"
        f" {min(margins_s) * 1e3:.0f} ms before at least,"
        f" {statistics.median(margins_s) * 1e3:.0f} ms at the median (TTL {TTL_S:g} s)"
    )
    assert in_time == len(margins_s)


@pytest.mark.parametrize("way", ["silent", "killed"])
def test_dead_before_the_lease_can_expire_in_lease_mode(tmp_path: Path, way: Way) -> None:
    with opened("strongroom-lease", tmp_path) as store:
        margins_s = margins_out_of_reach(store, tmp_path, BATCH, LEASE_TTL_S, way)
    print(
        f"store {way}, lease mode: {len(margins_s)} commands dead {min(margins_s) * 1e3:.0f} ms"
        f" before at least (TTL {LEASE_TTL_S:g} s)"
    )
    assert min(margins_s) > 0


@pytest.mark.parametrize("stubborn", [False, True], ids=["obedient", "stubborn"])
def test_dead_soon_after_it_was_broken(store: Store, tmp_path: Path, stubborn: bool) -> None:
    latencies_s: list[float] = []
    while len(latencies_s) < TRIALS:
        latencies_s += latencies_broken(store, tmp_path, BATCH, 60.0, stubborn=stubborn)
    kind = "ignores SIGTERM" if stubborn else "ends at SIGTERM"
    print(f"broken, the command {kind}: {spread(latencies_s)} until dead, {TRIALS} trials")
    assert max(latencies_s) < 20


def test_no_fenced_write_after_a_stop_of_all_of_it(store: Store, tmp_path: Path) -> None:
    outcomes: list[Frozen] = []
    while len(outcomes) < TRIALS:
        outcomes += frozen(store, tmp_path, BATCH, TTL_S)
    assert all(outcome.late > 0 for outcome in outcomes), "somebody tried nothing"
    assert {outcome.code for outcome in outcomes} == {76}
    print(
        f"stopped past the TTL and continued: {sum(o.late for o in outcomes)} late writes of"
        f" {len(outcomes)} commands, {sum(o.accepted for o in outcomes)} accepted"
    )
    assert all(outcome.accepted == 0 and outcome.kept for outcome in outcomes)


def test_dead_when_strongroom_lock_is_killed(store: Store, tmp_path: Path) -> None:
    latencies_s: list[float] = []
    while len(latencies_s) < TRIALS:
        latencies_s += latencies_killed(store, tmp_path, BATCH, TTL_S)
    print(f"killed with SIGKILL: {spread(latencies_s)} until dead, {TRIALS} trials")


def test_killed_at_any_moment_of_its_start_it_leaves_nothing_behind(
    store: Store, tmp_path: Path
) -> None:
    began = began_when_killed_early(store, tmp_path, TRIALS, 2.0)
    print(f"killed while it starts: {began} of {TRIALS} commands had begun, none lives on")


@pytest.mark.parametrize("name", ["etcd", "postgres", "redis", "s3"])
def test_on_other_stores(name: str, tmp_path: Path) -> None:
    with opened(name, tmp_path) as store:
        margins_s = margins_out_of_reach(store, tmp_path, BATCH, TTL_S, "silent")
        latencies_s = latencies_broken(store, tmp_path, BATCH, 60.0, stubborn=False)
    print(
        f"{store.real.name}: out of reach, {BATCH} commands dead {min(margins_s) * 1e3:.0f} ms"
        f" before at least (TTL {TTL_S:g} s); broken, {spread(latencies_s)} until dead"
    )
    assert min(margins_s) > 0
    assert max(latencies_s) < 30
