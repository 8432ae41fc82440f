"""The accounts that a store holds data of.

Lives here: where their names are found, by the table in keys.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# The keyspaces of containers, shares, queues and tables, of any account. Each is one letter and the
# account's name.
PLACE_RANGES: Final = tuple(
    (letter, bytes((letter[0] + 1,))) for letter in (b"c", b"f", b"q", b"t")
)


def held_accounts(keyspaces: Iterable[bytes]) -> tuple[str, ...]:
    """The accounts that have a container, share, queue or table, sorted. `keyspaces` are those of
    all `PLACE_RANGES`."""
    return tuple(
        sorted({keyspace[1:].decode("ascii", "backslashreplace") for keyspace in keyspaces})
    )
