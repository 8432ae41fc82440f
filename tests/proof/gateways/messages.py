"""Histories of messages over several gateways, judged message by message.

The actors are those of the histories over kills. Lives here: the end of a history, when all that
is left is taken. Must not live here: the actors and the model (tests/durability).
"""

from __future__ import annotations

import random
from collections.abc import Callable

from strongroom.testing.histories.queue_model import DeleteStep, GetStep, Got
from strongroom.testing.history import CompletedCall, Verdict, check
from tests.conformance.client import Client
from tests.conformance.messages import get
from tests.durability.queue_histories import HIDDEN_S, Actor, CrashModel, Recorder
from tests.proof.gateways.ways import SwitchingClient


class Messages:
    """The history of one queue."""

    def __init__(self, queue: str) -> None:
        self._queue, self._recorder = queue, Recorder()

    def client(self, number: int, seed: int, client: Client) -> Callable[[], None]:
        """Return what a client does again and again. Every second client waits for messages."""
        assert isinstance(client, SwitchingClient)
        client.reads_wait_s = number % 2
        chance = random.Random(f"{seed} message {number}")
        actor = Actor(self._recorder, self._queue, number, chance)
        # `act` asks for the type that the histories over kills have.
        return lambda: actor.act(client)  # type: ignore[arg-type]

    def operations(self) -> list[CompletedCall]:
        return self._recorder.operations()

    def drain(self, client: Client, pass_time: Callable[[float], object]) -> Verdict:
        """Let time pass and take all that is left, so that lost messages show.

        Arguments:
            pass_time: moves store time by so many seconds.
        """
        recorder, history = self._recorder, self._recorder.history
        recorder.crash()  # what has no answer by now has happened, or never will
        begun = history.begin()
        pass_time(HIDDEN_S + 1)
        history.time_passed("clock", begun)
        there: set[str] = set()
        while True:
            begun = history.begin()
            found = get(client, self._queue, numofmessages=32, visibilitytimeout=HIDDEN_S)
            if not found:
                break
            there |= {one.id for one in found}
            # By its text, a put without an answer is found.
            recorder.texts.update({one.id: one.text or "" for one in found})
            seen = {one.id: (GetStep(), Got(one.receipt or "", one.count or 0)) for one in found}
            history.end("the judge", begun, {**seen})
        self._compare(there)
        return check(recorder.operations(), CrashModel())

    def _compare(self, there: set[str]) -> None:
        recorder = self._recorder
        deleted = {
            one.object_key
            for one in recorder.history.operations()
            if isinstance(one.call, DeleteStep) and one.result is True
        }
        perhaps = {one.message_id for one in recorder.lost if isinstance(one.call, DeleteStep)}
        lost = set(recorder.texts) - there - deleted - perhaps
        assert not lost, f"messages are lost: {lost}"
        assert not there & deleted, f"messages came back: {there & deleted}"
