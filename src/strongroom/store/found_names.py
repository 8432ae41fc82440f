"""What a check has found, by the names that users know.

Lives here: the name of the blob, entity, queue or file to which a record belongs, and one finding
for each. Names are looked up only if there are findings, since that takes one more walk over the
records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from strongroom.engines.base import Record, Ref
from strongroom.engines.findings import Finding
from strongroom.store.core import keys, records, tag_keys
from strongroom.store.core.records import DamagedRecord
from strongroom.store.tree import tree_records

Walk = Callable[[], Iterator[tuple[Ref, Record | None]]]
"""Returns all records; None for a damaged one."""

_NUMBER_BYTES: Final = 8


def named(findings: Iterable[Finding], walk: Walk) -> list[Finding]:
    """One finding for each thing that something was found about, in the order of the first."""
    listed = list(findings)
    subjects = [one.subject for one in listed if one.subject is not None]
    names = _Names(walk(), subjects) if subjects else None
    problems: dict[str, list[str]] = {}
    for one in listed:
        place = one.place if one.subject is None or names is None else names.of(one.subject)
        told = problems.setdefault(place, [])
        if one.problem not in told:
            told.append(one.problem)
    return [Finding(place, "; ".join(told)) for place, told in problems.items()]


class _Names:
    """The names of containers, queues, tables and shares, and of the files in some shares."""

    def __init__(
        self, walked: Iterable[tuple[Ref, Record | None]], subjects: Iterable[Ref]
    ) -> None:
        self._owners: dict[bytes, str] = {}
        self._files: dict[int, tuple[int, str]] = {}
        shares = {one.partition.keyspace[1:] for one in subjects if _kind(one) in "an"}
        for ref, record in walked:
            if record is None:
                continue
            try:
                self._take(ref, record, shares)
            except (DamagedRecord, ValueError):
                continue  # a finding says so

    def _take(self, ref: Ref, record: Record, shares: set[bytes]) -> None:
        keyspace, kind = ref.partition.keyspace, _kind(ref)
        if kind == "n" and not ref.key.hidden and keyspace[1:] in shares:
            if ref.partition == keys.file_names(_number(keyspace[1:])):
                entry = tree_records.NAME.decode(record.value)
                self._files[entry.id] = _number(ref.key.name[:_NUMBER_BYTES]), entry.name
            return
        generation, name = 0, _text(ref.partition.name)
        if ref.key == keys.CONTAINER_KEY and kind == "c":
            generation = records.CONTAINER.decode(record.value).generation
        elif ref.key == keys.QUEUE_KEY and kind == "q":
            generation = records.QUEUE.decode(record.value).generation
        elif ref.key == keys.TABLE_KEY and kind == "t":
            table = records.TABLE.decode(record.value)
            generation, name = table.generation, table.name
        elif ref.key == keys.SHARE_KEY and kind == "f":
            generation = records.SHARE.decode(record.value).generation
        if generation:
            number = generation.to_bytes(_NUMBER_BYTES, "big")
            self._owners[number] = f"{_text(keyspace[1:])}/{name}"

    def of(self, ref: Ref) -> str:
        keyspace, name = ref.partition
        kind, rest = _kind(ref), keyspace[1:]
        if kind in "cqtf":
            return f"{_OWNERS[kind]} {_text(rest)}/{_text(name)}"
        if kind == "s":
            return f"the service properties of {_text(name)}"
        if kind == "j":
            return "a job of the server"
        if kind == "l":
            return "the line of those who wait for something"
        owner = self._owners.get(rest[:_NUMBER_BYTES], f"(deleted, {rest.hex()})")
        if tag_keys.is_tag_entries(keyspace):
            return f"the index of the tags of {owner}"
        if kind == "b":
            return f"{owner}/{_text(name)}"
        if kind == "a":
            return f"{owner}/{self._path(_number(name), _number(rest))}"
        if kind == "e":
            row_key = ref.key.name[:-2] if keys.is_entity_chunk(ref.key.name) else ref.key.name
            return f"{owner}, entity ({_text(name)!r}, {_text(row_key)!r})"
        if kind == "m":
            return f"the messages of {owner}"
        return f"the names in share {owner}"

    def _path(self, file_id: int, share: int) -> str:
        """Below its share's root."""
        parts: list[str] = []
        at = file_id
        while at != share and at in self._files and len(parts) <= len(self._files):
            at, name = self._files[at]
            parts.insert(0, name)
        return "/".join(parts) if at == share else f"(file {file_id})"


_OWNERS: Final = {"c": "container", "q": "queue", "t": "table", "f": "share"}


def _kind(ref: Ref) -> str:
    """The first letter of a keyspace (keys.py)."""
    return ref.partition.keyspace[:1].decode("latin-1")


def _number(name: bytes) -> int:
    return int.from_bytes(name, "big")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
