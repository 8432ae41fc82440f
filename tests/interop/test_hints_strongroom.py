"""Gates with hints over the long poll of a Strongroom, with the flag in another store."""

from __future__ import annotations

from strongroom.coordination.hints import multicast
from strongroom.testing.server import Server
from tests.coordination import hint_trials


def test_nodes_are_released_by_the_message(server: Server) -> None:
    url = f"azure://devstoreaccount1/hints?endpoint={server.url}/devstoreaccount1"
    hint_trials.all_are_released_by_the_message(lambda: multicast(url), 20)
    hint_trials.tasks_are_released_by_the_message(lambda: multicast(url), 20)


def test_lost_messages_strand_nobody(server: Server) -> None:
    url = f"azure://devstoreaccount1/hints?endpoint={server.url}/devstoreaccount1"
    hint_trials.nobody_is_stranded_by_lost_messages(lambda: multicast(url), 20)
