"""The answers about entities, transactions and messages have one order, although the server is
killed.

The long version is in tests/proof.
"""

from __future__ import annotations

from pathlib import Path

from strongroom.testing.histories.queue_model import DeleteStep, GetStep, Got, PutStep
from strongroom.testing.history import check
from tests.durability import queue_histories, table_histories
from tests.durability.crashes import Crashes
from tests.durability.queue_histories import CrashModel, Recorder


def test_entities_are_linearizable_over_kills(tmp_path: Path) -> None:
    """T-WRI-08, T-WRI-09."""
    with Crashes(tmp_path / "data") as crashes:
        table_histories.make_table(crashes)
        assert table_histories.explained(table_histories.entities(crashes, 12, 25, 2, 1))


def test_transactions_are_linearizable_over_kills(tmp_path: Path) -> None:
    """T-BAT-02, T-QRY-11."""
    with Crashes(tmp_path / "data") as crashes:
        table_histories.make_table(crashes)
        assert table_histories.explained(table_histories.transactions(crashes, 12, 15, 2, 1))


def test_messages_are_received_once_over_kills(tmp_path: Path) -> None:
    """Q-GET-07, Q-POP-02, Q-POP-05."""
    with Crashes(tmp_path / "data") as crashes:
        assert table_histories.explained(queue_histories.messages(crashes, 6, 10, 20, 2, 1))


def _seen(recorder: Recorder, *calls: tuple[object, object]) -> bool:
    """Whether one message may have gone through these."""
    for call, result in calls:
        recorder.history.end("client", recorder.history.begin(), {"m": (call, result)})
    return check(recorder.operations(), CrashModel()).linearizable


def test_what_a_crash_explains_and_what_it_does_not() -> None:
    """The check itself: a lost retrieval may have taken a message, but only one that was lost."""
    lost = Recorder()
    lost.lose(queue_histories._Lost(lost.history.begin(), GetStep()))
    lost.crash()
    assert not _seen(lost, (PutStep(), "put"), (GetStep(), Got("a", 2)))
    taken = Recorder()
    taken.history.end("client", taken.history.begin(), {"m": (PutStep(), "put")})
    taken.lose(queue_histories._Lost(taken.history.begin(), GetStep()))
    taken.crash()
    taken.history.time_passed("clock", taken.history.begin())
    assert _seen(taken, (GetStep(), Got("a", 2)), (DeleteStep("a"), True))
    assert not _seen(taken, (GetStep(), Got("b", 3)))
