"""Reading the bytes that leaves name.

Lives here: `fetch`, which reads inline data and contents, verified.
"""

from __future__ import annotations

from collections.abc import Iterable

from strongroom.engines import base
from strongroom.engines.base import ContentMissing
from strongroom.store.core.extents.model import LeafStore, MapPlace, decode_data


async def fetch(
    engine: base.StorageEngine, place: MapPlace, wanted: Iterable[tuple[int, LeafStore]]
) -> dict[tuple[int, LeafStore], bytes]:
    """Return the bytes of stores, each named with its leaf.

    A store has at most 64 KiB, so that engines verify all of it.

    Raises: ContentMissing for a store that was dropped; DataDamaged, DamagedRecord.
    """
    fetched: dict[tuple[int, LeafStore], bytes] = {}
    inline = []
    for leaf, store in dict.fromkeys(wanted):
        if store.content:
            if fetched:
                await engine.turns.pause()  # a read may never suspend
            fetched[leaf, store] = await _read(engine.contents, store)
        else:
            inline.append((leaf, store))
    refs = [place.data(leaf, store.born) for leaf, store in inline]
    records = await engine.read(refs) if refs else []
    for named, ref, record in zip(inline, refs, records, strict=True):
        if record is None:
            raise ContentMissing(f"the inline data {ref.key.name!r} is gone")
        fetched[named] = decode_data(ref, record.value)
    return fetched


async def _read(contents: base.Contents, store: LeafStore) -> bytes:
    opened = await contents.open(store.content)
    try:
        return await opened.read(0, store.size_bytes)
    finally:
        opened.close()
