"""The line of gateways: who is first, and what is left of it after each change."""

from __future__ import annotations

import pytest

from strongroom.semantics.core.lines import (
    Line,
    Ticket,
    first_ahead,
    is_over,
    waiting_elsewhere,
    with_ticket,
)

NOW, LATER = 100, 200
A = Ticket(10, 0, 1, LATER)
B = Ticket(20, 1, 2, LATER)
C = Ticket(30, 2, 3, LATER)
A_NEXT = Ticket(25, 0, 1, LATER)
A_LAST = Ticket(40, 0, 1, LATER)
ENDED = Ticket(5, 3, 4, NOW)
ALL = Line((A, B, C))


@pytest.mark.parametrize(
    ("line", "own", "dead", "ahead"),
    [
        (Line(), A, (), None),
        (ALL, A, (), None),
        (ALL, B, (), A),
        (ALL, C, (), A),
        (ALL, Ticket(15, 9, 9, LATER), (), A),
        (ALL, Ticket(5, 9, 9, LATER), (), None),
        # A dead gateway's ticket does not count, nor does one whose time is over.
        (ALL, B, (A.run,), None),
        (ALL, C, (A.run,), B),
        (Line((ENDED, B)), B, (), None),
        # A gateway's own tickets do not hold it up, but those of an earlier run of its number do
        # until that was declared dead.
        (Line((A, B)), A_NEXT, (), B),
        (Line((A, C)), A_NEXT, (), None),
        (Line((A,)), Ticket(20, 0, 9, LATER), (), A),
        (Line((A,)), Ticket(20, 0, 9, LATER), (A.run,), None),
        # While there is plenty, nobody is held up.
        (Line((A, B), plenty=True), C, (), None),
        # Of two that arrived at the same time, one is first for both.
        (Line((A,)), Ticket(10, 1, 2, LATER), (), A),
        (Line((Ticket(10, 1, 2, LATER),)), A, (), None),
    ],
)
def test_a_waiter_has_its_turn_when_nobody_arrived_earlier(
    line: Line, own: Ticket, dead: tuple[tuple[int, int], ...], ahead: Ticket | None
) -> None:
    """B-WAI-08."""
    assert first_ahead(line, own, dead, NOW) == ahead


@pytest.mark.parametrize(
    ("line", "own", "ticket", "dead", "after"),
    [
        # A gateway enters the line, passes its place on, and leaves.
        (Line(), A, A, (), Line((A,))),
        (Line((B,)), A, A, (), Line((A, B))),
        (ALL, A, A_NEXT, (), Line((B, A_NEXT, C))),
        (ALL, A, A_LAST, (), Line((B, C, A_LAST))),
        (ALL, A, None, (), Line((B, C))),
        (Line((A,)), A, None, (), Line()),
        # To write it again, or to remove it again, changes nothing.
        (ALL, A, A, (), ALL),
        (Line((B, C)), A, None, (), Line((B, C))),
        # A place that was never written is passed on, too.
        (Line((C,)), A, A_NEXT, (), Line((A_NEXT, C))),
        # A later waiter's ticket is not taken away by one who leaves late.
        (Line((B, A_NEXT)), A, None, (), Line((B, A_NEXT))),
        (Line((B, A_NEXT)), A, A, (), Line((B, A_NEXT))),
        # Whoever must wait, or leaves, has found that there is no plenty.
        (Line((A, B), plenty=True), A, A, (), Line((A, B))),
        # What has no effect is left out.
        (Line((ENDED, B)), C, C, (), Line((B, C))),
        (ALL, C, None, (A.run,), Line((B,))),
    ],
)
def test_a_gateway_has_one_ticket_at_most(
    line: Line,
    own: Ticket,
    ticket: Ticket | None,
    dead: tuple[tuple[int, int], ...],
    after: Line,
) -> None:
    assert with_ticket(line, own, ticket, dead, NOW) == after


@pytest.mark.parametrize(
    ("line", "dead", "over"),
    [
        (Line(), (), True),
        (Line((ENDED,)), (), True),
        (Line((ENDED, A)), (), False),
        (Line((ENDED, A)), (A.run,), True),
        (ALL, (A.run, C.run), False),
    ],
)
def test_a_line_is_over_when_nobody_waits_in_it(
    line: Line, dead: tuple[tuple[int, int], ...], over: bool
) -> None:
    assert is_over(line, dead, NOW) == over


def test_the_waiters_of_other_gateways_are_counted() -> None:
    crowd = Ticket(50, 7, 8, LATER, waiters=5)
    line = Line((ENDED, A, B, crowd))
    assert waiting_elsewhere(line, B, (), NOW) == 1 + 5
    assert waiting_elsewhere(line, B, (A.run,), NOW) == 5
    assert waiting_elsewhere(line, crowd, (), NOW) == 1 + 1
