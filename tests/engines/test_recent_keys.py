"""RecentKeys distinguishes keys that were requested before from new ones, in memory of fixed
size."""

from __future__ import annotations

from strongroom.engines.embedded.records.record_cache import RecentKeys


def test_a_thing_was_seen_from_its_second_time_on() -> None:
    seen = RecentKeys(100)
    assert [seen.check_and_add(("a", 1)) for _ in range(3)] == [False, True, True]
    assert not seen.check_and_add(("a", 2))


def test_of_two_with_one_place_the_later_is_remembered() -> None:
    seen = RecentKeys(10)
    assert [seen.check_and_add(one) for one in (3, 3, 13, 13, 3, 3)] == [
        False, True, False, True, False, True,
    ]  # fmt: skip


def test_however_many_are_seen_as_many_are_remembered_as_there_are_places() -> None:
    seen = RecentKeys(50)
    assert not any(map(seen.check_and_add, range(1, 10_001)))
    assert all(map(seen.check_and_add, range(9_951, 10_001)))
    assert not any(map(seen.check_and_add, range(9_901, 9_951)))
    assert len(seen._marks) == 50
