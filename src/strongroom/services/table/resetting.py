"""How a reset removes a table.

Lives here: the steps of that commit. Must not live here: when it happens (services/reset.py), the
sweep of the entities (sweep.py).
"""

from __future__ import annotations

from strongroom.services.core.resetting import FoundPlace, PlaceRemoval
from strongroom.services.table.tables import deletion_steps
from strongroom.store.core import keys, records


def removal_of(place: FoundPlace, stamp: int) -> PlaceRemoval:
    """Return the removal of a table with all of its entities."""
    table = records.TABLE.decode(place.value)
    account, name = place.name.split("/")
    steps = deletion_steps(keys.table(account, name), place.name, table, stamp)
    return PlaceRemoval(table.generation, steps)
