"""Share snapshots: what a commit keeps for them, and how they are read.

Lives here: the past states that every commit in a share keeps for snapshots, and reads of a
snapshot's names and attributes. Must not live here: taking and deleting snapshots
(shares/share_snapshots.py), reclaiming space (past_sweep.py).

**Taking one** is one commit, which copies nothing. It notes its stamp in the share's record and
adds a record for the snapshot beside it. Every decision in a share reads the share's record. So a
commit with a later stamp sees the snapshot, and one with an earlier stamp came before it. The
stamps of two gateways have no such order: a share is for one gateway at a time
(opens/share_holds.py).

**Copy on write.** A name and a file's attributes are records; a record's version says since when it
is valid. A commit may replace or remove one that the newest snapshot sees. It then writes the old
value under another key, with the stamp until which it was valid (share_keys.py). `with_past_states`
does this for every decision, in the same step. Bytes have the same rule in store/core/extents.
Permissions are never replaced. A record is kept once for all snapshots that see it.

**A rename** of a directory changes its name and its attributes only: names below it refer to its
id. **A deletion** leaves the past name, the past attributes and the bytes, if a snapshot sees them.
The file then has no node, and past_sweep.py removes what no snapshot sees.

**Reading at a stamp.** The present record is the right one if its version is not above the stamp.
Otherwise it is the past record that ended after the stamp and began before it. The present one is
read first: a record that is replaced in between is found among the past ones. A listing merges both
by their keys, page by page.

**A snapshot may be deleted while it is read.** Each read ends with a check that the snapshot still
exists. If so, nothing that it sees was removed before. Long reads register (node/reading.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import msgspec

from strongroom.auth.request import Service
from strongroom.engines.base import Commit, Engine, Item, Key, Partition, Record, Ref, Step, Write
from strongroom.errors import file as file_errors
from strongroom.errors.core import StorageError
from strongroom.services.core.calls import Call
from strongroom.services.core.decisions import Found
from strongroom.services.core.places import PLACES, check_place, place_ref
from strongroom.services.core.runner import Services
from strongroom.store.core import keys, share_keys
from strongroom.store.core.records import ShareRecord
from strongroom.store.file import file_records
from strongroom.store.file.file_records import PastRecord
from strongroom.store.tree import tree_records

T = TypeVar("T")

# More than the past records that one name can have: one for each snapshot.
_PAGE_RECORDS: Final = 300


def with_past_states(
    share: ShareRecord,
    reads: Sequence[Ref],
    found: Found,
    commit: Commit[T],
    stamp: int,
) -> Commit[T]:
    """Return a decision's commit in a share, with the past states that it keeps for snapshots.

    Arguments:
        share: as the decision sees it.
        reads: what the decision was given. It includes each name that the decision writes, and the
            attributes of each file that the decision does not create.
    """
    if not share.snapshots:
        return commit
    before = found.by_ref(reads)
    newest = share.snapshots[-1]
    steps = tuple(_kept_in(step, before, newest, stamp) for step in commit.steps)
    return msgspec.structs.replace(commit, steps=steps)


def _kept_in(step: Step, before: dict[Ref, Record | None], newest: int, stamp: int) -> Step:
    kept: list[Write] = []
    for write in step.writes:
        ref = Ref(step.partition, write.key)
        if share_keys.is_name(ref):
            key = share_keys.past_name(write.key, stamp)
        elif share_keys.is_attributes(ref) and step.partition.name != keys.number(stamp):
            key = share_keys.past_attributes(stamp)
        else:
            continue
        record = before[ref]
        if record is not None and record.version < newest:
            value = file_records.PAST.encode(PastRecord(record.version, record.value))
            kept.append(Write(key, value))
    return msgspec.structs.replace(step, writes=(*step.writes, *kept)) if kept else step


def newest_of(share: ShareRecord) -> int:
    """A stamp; 0 = the share has no snapshot."""
    return share.snapshots[-1] if share.snapshots else 0


def require_snapshot(call: Call[Any], stored: Record | None) -> ShareRecord:
    """Return the share if it still has the snapshot that a request names. `stored`: the share's
    record."""
    share = PLACES[Service.FILE].read(check_place(call, stored)).record
    assert isinstance(share, ShareRecord)
    if call.target.snapshot not in share.snapshots:
        raise StorageError(file_errors.SHARE_SNAPSHOT_NOT_FOUND)
    return share


async def check_snapshot_exists(services: Services, call: Call[Any]) -> None:
    """End a read of a snapshot by checking that it still exists."""
    (stored,) = await services.store.read([place_ref(call)])
    require_snapshot(call, stored)


async def names_on_path_at(
    engine: Engine, generation: int, folded: Sequence[bytes], at: int
) -> list[tuple[Ref, Record | None]]:
    """Follow the names of a path as a snapshot sees them. Returns what Engine.follow returns.

    The present names are followed up to one that the snapshot sees otherwise, and again behind it.
    `folded`: the names, as the keys have them.
    """
    partition, links = keys.file_names(generation), tree_records.NAME_LINKS
    on_path: list[tuple[Ref, Record | None]] = []
    parent: bytes | None = keys.number(generation)
    while parent is not None and len(on_path) < len(folded):
        present = await engine.follow(partition, links, parent, folded[len(on_path) :])
        for ref, record in present:
            first = share_keys.past_name(ref.key, at + 1)
            seen = await _at(engine, partition, record, at, first)
            on_path.append((ref, seen))
            if seen is not record:
                break
        last = on_path[-1][1]
        parent = None if last is None else links.next_id(last.value)
    return on_path


async def attributes_at(engine: Engine, partition: Partition, at: int) -> Record | None:
    (present,) = await engine.read([Ref(partition, keys.FILE_KEY)])
    return await past_attributes(engine, partition, present, at)


async def past_attributes(
    engine: Engine, partition: Partition, present: Record | None, at: int
) -> Record | None:
    """As `attributes_at`, for a caller that has read the present attributes (`present`)."""
    return await _at(engine, partition, present, at, share_keys.past_attributes(at + 1))


async def _at(
    engine: Engine, partition: Partition, present: Record | None, at: int, first: Key
) -> Record | None:
    if present is not None and present.version <= at:
        return present
    last = first.name[:-8] + b"\xff" * 8
    items = await engine.read_range(partition, first.hidden, first.name, last, 1)
    if not items:
        return None
    past = file_records.PAST.decode(items[0].value)
    return Record(past.value, past.since) if past.since <= at else None


async def names_at(
    engine: Engine, partition: Partition, span: tuple[bytes, bytes], at: int, count: int
) -> list[Item]:
    """Return the first names of a range as a snapshot sees them, in order. `span`: (first, until)
    of the keys of the names. `count`: the most names to return."""
    first, until = span
    items: list[Item] = []
    while len(items) < count and first < until:
        page, first = await _page_at(engine, partition, (first, until), at)
        items += page
        await engine.turns.pause()
    return items[:count]


async def _page_at(
    engine: Engine, partition: Partition, span: tuple[bytes, bytes], at: int
) -> tuple[list[Item], bytes]:
    """Return some names from the first on, and the key up to which they are complete."""
    first, until = span
    reached = until
    present = await engine.read_range(partition, False, first, until, _PAGE_RECORDS)
    if len(present) == _PAGE_RECORDS:
        reached = present[-1].name + b"\0"
    begin, end = share_keys.past_names(first, until)
    past = await engine.read_range(partition, True, begin, end, _PAGE_RECORDS)
    if len(past) == _PAGE_RECORDS:
        # More past records of the last name may follow.
        reached = min(reached, _of_name(past[-1])[0])
    seen = {item.name: item for item in present if item.version <= at and item.name < reached}
    for item in past:
        name, ended = _of_name(item)
        kept = file_records.PAST.decode(item.value)
        # The past records of a name sort behind the key where the next possible name begins.
        if first <= name < reached and kept.since <= at < ended:
            seen.setdefault(name, Item(name, kept.value, kept.since))
    return [seen[name] for name in sorted(seen)], reached


def _of_name(item: Item) -> tuple[bytes, int]:
    found = share_keys.past_of_name(item.name)
    assert found is not None, "the range holds past names only"
    return found
