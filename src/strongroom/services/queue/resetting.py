"""How a reset removes a queue.

Lives here: the steps of that commit. Must not live here: when it happens (services/reset.py), the
sweep of the messages (sweep.py).
"""

from __future__ import annotations

from strongroom.engines.base import Step, Write
from strongroom.services.core.resetting import FoundPlace, PlaceRemoval
from strongroom.services.queue.message_changes import sweep_step
from strongroom.store.core import keys, records


def removal_of(place: FoundPlace, stamp: int) -> PlaceRemoval:
    """Return the removal of a queue with all of its messages."""
    queue = records.QUEUE.decode(place.value)
    account, name = place.name.split("/")
    ref = keys.queue(account, name)
    sweep = sweep_step(place.name, queue.generation, queue.epoch, stamp)
    return PlaceRemoval(queue.generation, (sweep, Step(ref.partition, (Write(ref.key, None),))))
