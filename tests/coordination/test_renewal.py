"""The schedule of renewals: which are due, and how rarely the task is woken."""

from __future__ import annotations

from strongroom.coordination.clock import ManualClocks
from strongroom.coordination.effects import Steps
from strongroom.coordination.session.handles import Hold
from strongroom.coordination.session.renewal import Timetable


class NoKeeper:
    """Keeps nothing: these holds are only timed."""

    def renew(self, hold: Hold) -> Steps[bool]:
        raise AssertionError("nobody renews here")

    release = renew

    def watch_for_loss(self, hold: Hold) -> Steps[None]:
        raise AssertionError("nobody watches here")


def new_hold(clock: ManualClocks, number: int) -> Hold:
    deadline_s = clock.boot_s() + 15.0
    return Hold(clock, "lock/a", "a", f"n-{number}", number, 15.0, deadline_s, NoKeeper())


def test_short_holds_do_not_wake_the_task_each_time() -> None:
    clock, wakes = ManualClocks(), []
    table = Timetable(clock, lambda: wakes.append(clock.boot_s()))
    for number in range(1, 1001):
        hold = new_hold(clock, number)
        hold.on_end = table.note_ended
        table.add(clock.boot_s() + 5.0, hold)
        hold.end()
        assert table.pop_due() is None  # what the task does when it was woken, which takes a while
        clock.advance(0.001)
    assert len(wakes) <= 1000 / 50
    assert len(table) < 200


def test_what_is_over_is_not_due() -> None:
    clock = ManualClocks()
    table = Timetable(clock, lambda: None)
    over, active = new_hold(clock, 1), new_hold(clock, 2)
    table.add(clock.boot_s() + 1.0, over)
    table.add(clock.boot_s() + 2.0, active)
    over.end()
    clock.advance(1.5)
    assert table.pop_due() is None
    assert table.next_s() == clock.boot_s() + 0.5
    clock.advance(0.5)
    assert table.pop_due() is active
    assert table.next_s() is None


def test_an_earlier_hold_wakes_the_task() -> None:
    clock, wakes = ManualClocks(), []
    table = Timetable(clock, lambda: wakes.append(True))
    table.add(clock.boot_s() + 5.0, new_hold(clock, 1))
    table.add(clock.boot_s() + 9.0, new_hold(clock, 2))
    assert len(wakes) == 1
    table.add(clock.boot_s() + 1.0, new_hold(clock, 3))
    assert len(wakes) == 2
