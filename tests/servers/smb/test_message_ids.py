"""Message ids and credits agree with a model that keeps every id in a set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.servers.smb.state.message_ids import CREDITS_MAX, MessageIds


def test_the_first_id_is_zero_and_is_used_once() -> None:
    ids = MessageIds()
    assert not ids.consume(1, 1)
    assert ids.consume(0, 0)
    assert not ids.consume(0, 1)
    assert ids.grant(0, 1) == 1
    assert ids.consume(1, 1)


def test_a_charge_uses_as_many_ids() -> None:
    ids = MessageIds()
    ids.consume(0, 1)
    assert ids.grant(1, 10) == 10
    assert not ids.consume(5, 7)
    assert ids.consume(3, 4)
    assert not ids.consume(6, 1)
    assert ids.consume(7, 4)
    assert ids.consume(1, 2)
    assert ids.available == 0


@pytest.mark.parametrize(("requested", "granted"), [(0, 1), (1, 1), (2, 2), (65_535, CREDITS_MAX)])
def test_what_is_asked_for_is_granted_up_to_a_limit(requested: int, granted: int) -> None:
    ids = MessageIds()
    ids.consume(0, 1)
    assert ids.grant(1, requested) == granted


def test_a_client_is_never_left_without_a_credit() -> None:
    ids = MessageIds()
    ids.consume(0, 1)
    for number in range(1, 100):
        assert ids.grant(1, 0) >= 1
        assert ids.consume(number, 1)


def test_an_old_id_that_is_never_used_stops_the_grants() -> None:
    ids = MessageIds()
    ids.consume(0, 1)
    ids.grant(1, 2)
    top = 2
    for _ in range(10 * CREDITS_MAX):
        if not ids.consume(top, 1):
            break
        top += 1
        ids.grant(1, 1)
    assert top == 1 + 2 * CREDITS_MAX
    assert ids.consume(1, 1)
    assert ids.grant(1, 1) == 1


class _Model:
    def __init__(self) -> None:
        self.free = {0}
        self.top = 1

    def consume(self, first: int, charge: int) -> bool:
        wanted = set(range(first, first + max(charge, 1)))
        if not wanted <= self.free:
            return False
        self.free -= wanted
        return True

    def granted(self, count: int) -> None:
        self.free |= set(range(self.top, self.top + count))
        self.top += count


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 60), st.integers(0, 20), st.integers(0, 40)),
        max_size=60,
    )
)
def test_the_window_is_the_model_s(steps: list[tuple[bool, int, int, int]]) -> None:
    ids, model = MessageIds(), _Model()
    for grants, first, charge, requested in steps:
        if grants:
            count = ids.grant(charge, requested)
            assert 0 <= count <= max(charge, 1) + requested + 1
            model.granted(count)
            assert ids.available >= 1
        else:
            assert ids.consume(first, charge) == model.consume(first, charge)
        assert ids.available == len(model.free) <= CREDITS_MAX
