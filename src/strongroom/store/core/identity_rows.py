"""The rows of accounts and of role assignments, as records.

Lives here: how a row becomes records, and how records become rows. Must not live here: what a row
says (auth/), or when it changes (services/identities.py).

A row is one version byte and then text. A row that is longer than a record is kept in chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from strongroom.engines.base import Item, Record, Ref, Write
from strongroom.store.core import keys
from strongroom.store.core.records import DamagedRecord

CHUNK_BYTES: Final = 60 * 1024
CHUNKS_MAX: Final = 64
"""A longer row is refused."""
_VERSION: Final = b"\1"
CHANGED_VALUE: Final = _VERSION


class RowsRefused(ValueError):
    """Rows that a store does not keep, since they are too long or too many. The text says which."""


def rows_of(items: Iterable[Item]) -> dict[str, bytes]:
    """Return the rows of a partition by their names. Raises: DamagedRecord."""
    found: dict[str, list[bytes]] = {}
    for key, value, _ in items:
        if key == keys.IDENTITIES_CHANGED.name:
            continue
        name, chunk = keys.identity_chunk(key)
        if chunk != len(found.setdefault(name, [])):
            raise DamagedRecord(f"row {name!r}: a part of it is missing")
        found[name].append(value)
    return {name: _joined(name, chunks) for name, chunks in found.items()}


def _joined(name: str, chunks: list[bytes]) -> bytes:
    row = b"".join(chunks)
    if row[:1] != _VERSION:
        raise DamagedRecord(f"row {name!r} has version {row[:1]!r}, and not {_VERSION!r}")
    return row[1:]


def changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[tuple[Write, ...]]:
    """Yield the writes of each row that changes. Raises: RowsRefused."""
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        chunks = [] if new is None else _chunks(name, new)
        left = 0 if old is None else len(_chunks(name, old))
        yield (
            *(Write(keys.identity(name, index), chunk) for index, chunk in enumerate(chunks)),
            *(Write(keys.identity(name, index), None) for index in range(len(chunks), left)),
        )


def _chunks(name: str, row: bytes) -> list[bytes]:
    whole = _VERSION + row
    chunks = [whole[at : at + CHUNK_BYTES] for at in range(0, len(whole), CHUNK_BYTES)]
    if len(chunks) > CHUNKS_MAX:
        raise RowsRefused(f"{name!r} is longer than {CHUNKS_MAX * CHUNK_BYTES} bytes in a store")
    return chunks


def check(ref: Ref, record: Record) -> bool:
    """Return whether a record of the keyspace belongs where it is. Raises: DamagedRecord."""
    if ref.partition not in (keys.ACCOUNTS, keys.ROLES) or ref.key.hidden:
        return False
    name, chunk = keys.identity_chunk(ref.key.name)
    if chunk == 0:
        _joined(name, [record.value])
    return True
