"""Large answers share a memory limit: above it, the oldest answer is aborted."""

from __future__ import annotations

from strongroom.servers.http.large_answers import LargeAnswerBudget


class Sends:
    """A connection that counts the requests to give up."""

    def __init__(self) -> None:
        self.given_up = 0

    def give_up(self) -> None:
        self.given_up += 1


def test_the_oldest_go_until_the_rest_fits() -> None:
    answers, several = LargeAnswerBudget(10), [Sends() for _ in range(4)]
    for sends in several[:3]:
        answers.reserve(sends, 3)
    answers.reserve(several[3], 6)
    assert [sends.given_up for sends in several] == [1, 1, 0, 0]


def test_a_single_one_may_be_of_any_length() -> None:
    answers, sends = LargeAnswerBudget(10), Sends()
    answers.reserve(sends, 1000)
    assert sends.given_up == 0


def test_what_was_sent_counts_no_more_however_often_it_is_said() -> None:
    answers, several = LargeAnswerBudget(10), [Sends() for _ in range(3)]
    answers.reserve(several[0], 6)
    for _ in range(2):
        answers.release(several[0])
    answers.reserve(several[1], 6)
    answers.reserve(several[2], 4)
    assert [sends.given_up for sends in several] == [0, 0, 0]
    answers.reserve(several[0], 1)
    assert [sends.given_up for sends in several] == [0, 1, 0]
