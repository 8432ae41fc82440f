"""Sparse, mutable content: any range of it can be written or cleared, and snapshots share it.

Lives here: the content of page blobs and files, as a library for their services.

**A map** locates the bytes of one content. It is in the partition of its owner, beside the owner's
records (keys.py). A content to which nothing was written has no records.

**Leaves.** The content is cut into leaves of 64 KiB. A leaf's record lists its extents: which bytes
are allocated, in which store they are, and when they were written. A store holds the bytes that one
commit wrote into one leaf. Up to 8 KiB are inline in a record of their own, more in a content. A
content has at most 64 KiB, which engines verify whole. A store belongs to one leaf. So no
references are counted: whether a store is in use follows from the few versions of its leaf.

**Cost.** A commit writes the leaves that it touches, at most 129 for 8 MiB. A leaf record has at
most 160 extents and 32 stores (4 KiB). A commit that would exceed this rewrites the leaf in the
same commit, so at most 64 KiB. So does one that would leave less than half of its bytes in use.
Whole leaves are never rewritten, so this concerns at most the two leaves at the ends of a range.

**Snapshots are stamps.** Taking one writes nothing here: the owner records the stamp of its commit.
The first commit that changes a leaf afterwards keeps the version before as a past leaf, whose key
has the end of its validity. A snapshot reads the version that was valid at its stamp. Versions
share stores. Extents carry the stamp of their writing, and holes that of their clear (holes.py). So
the changes since a snapshot follow from the leaves.

**Long clears are records.** A clear of more than 8 MiB is one entry in the map's list of pending
clears. So are a truncation and the end of a content. A read of a leaf that is older than a clear
leaves out the bytes that the clear covers. A sweep applies the entries leaf by leaf, and then
removes them.

**Reading.** A read of up to 256 KiB is one engine read of the records (`read_short`). A longer one
registers with `MapReaders`, and counts as a snapshot until it ends.

**Space** is freed in the commit that replaces a store, if no snapshot or reader needs it, and else
by `Sweep`. A commit whose `MapChange.has_garbage` is set must order a sweep in an earlier step, and
so must the deletion of a snapshot. A sweep may run at any time, repeatedly, and twice at once.

How a service writes:

    async with await receive(store, place, offset, source, length) as draft:
        mutation = await draft.prepare(newest_snapshot)
        with readers.mutating(partition):
            await to_its_end(store.update(partition, [head, *mutation.reads], decide))

`decide` checks its conditions first, then adds `mutation.decide(found, stamp,
readers.pins(partition, newest_snapshot))` to its own step. It must write the owner's record, whose
version is the position of readers. After Outdated, prepare again; after Backlog, sweep first.

**What files need from it:**
 - Ranges of any byte alignment. Allocation is exact to the byte while a leaf has at most 128 runs.
   Beyond that, gaps between two runs of the same 512-byte sector are filled with zeros. Lists may
   be widened to a granularity (`granularity_bytes`). SMB's SET_ZERO_DATA is `clear`, its
   QUERY_ALLOCATED_RANGES is `list_ranges`.
 - Truncation of any length in one commit; bytes added by an extension are zeros.
 - Snapshots of a share: the stamp comes from outside. The decision reads the share's record as an
   input, and must see each snapshot whose stamp is smaller than its own. On an engine that cannot
   promise this, the snapshot is taken when earlier commits have become quiet.
 - Many small writes: one commit each, without a content, of about the bytes written.

**An incremental copy** to another partition lists the changes between two snapshots. It reads each
written range at the newer one, and writes it as a mutation in the destination's map. It clears the
other ranges, and takes a snapshot there. Repeating any part of it is harmless.
"""

from __future__ import annotations

from strongroom.store.core.extents.change import (
    Backlog,
    MapChange,
    Mutation,
    Outdated,
    Part,
    Pins,
)
from strongroom.store.core.extents.check import MapsCheck
from strongroom.store.core.extents.draft import (
    Draft,
    clear,
    end,
    is_ended,
    receive,
    received,
    resize,
    store_leaf,
)
from strongroom.store.core.extents.model import (
    LEAF_BYTES,
    OFFSET_MAX,
    WRITE_BYTES_MAX,
    MapPlace,
    contents_of,
)
from strongroom.store.core.extents.ranges import (
    Range,
    RangeQuery,
    Ranges,
    list_changes,
    list_ranges,
)
from strongroom.store.core.extents.readers import MapReaders, MapReading
from strongroom.store.core.extents.reading import SHORT_BYTES_MAX, ZEROS, read, read_short
from strongroom.store.core.extents.sweep import Sweep

__all__ = [
    "LEAF_BYTES",
    "OFFSET_MAX",
    "SHORT_BYTES_MAX",
    "WRITE_BYTES_MAX",
    "ZEROS",
    "Backlog",
    "Draft",
    "MapChange",
    "MapPlace",
    "MapReaders",
    "MapReading",
    "MapsCheck",
    "Mutation",
    "Outdated",
    "Part",
    "Pins",
    "Range",
    "RangeQuery",
    "Ranges",
    "Sweep",
    "clear",
    "contents_of",
    "end",
    "is_ended",
    "list_changes",
    "list_ranges",
    "read",
    "read_short",
    "receive",
    "received",
    "resize",
    "store_leaf",
]
