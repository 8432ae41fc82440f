"""Stored block lists: those of earlier versions are read, copied and stored in the new form."""

from __future__ import annotations

import msgspec
import pytest

from strongroom.slices import run_to_completion
from strongroom.store.blob.bodies.blocks import ListedBlock, ListWriter, Span, StoredBlockList
from strongroom.store.core.records import DamagedRecord

_BLOCKS = [ListedBlock(b"%d" % number, 10, number // 2, number % 2 * 10) for number in range(1200)]
# The form of earlier versions: version 1, and the rows of all blocks.
_EARLIER = b"\x01" + msgspec.msgpack.encode(
    [[one.id, one.size_bytes, one.content, one.offset_bytes] for one in _BLOCKS]
)


def _as_now() -> StoredBlockList:
    writer = ListWriter()
    run_to_completion(writer.add(_BLOCKS))
    return StoredBlockList.decode(writer.end().encode())


@pytest.mark.parametrize("form", ["earlier", "now"])
def test_a_list_of_either_form_has_the_same_blocks(form: str) -> None:
    found = StoredBlockList.decode(_EARLIER) if form == "earlier" else _as_now()
    assert (found.count, found.size_bytes) == (1200, 12_000)
    assert [block for segment in found.segments for block in segment.blocks()] == _BLOCKS
    assert run_to_completion(found.contents()) == frozenset(range(600))
    assert list(run_to_completion(found.locate(15, 30))) == [
        Span(0, 15, 5),
        Span(1, 0, 20),
        Span(2, 0, 5),
    ]
    assert list(run_to_completion(found.locate(4995, 10))) == [Span(249, 15, 5), Span(250, 0, 5)]


def test_a_list_of_the_earlier_form_is_stored_in_the_present_one() -> None:
    """A copy of a body takes over its list."""
    again = StoredBlockList.decode(StoredBlockList.decode(_EARLIER).encode())
    assert [block for segment in again.segments for block in segment.blocks()] == _BLOCKS


@pytest.mark.parametrize("data", [b"", b"\x03\x90", _EARLIER[:-1], b"\x02\x91\x01"])
def test_what_is_no_list_is_damage(data: bytes) -> None:
    with pytest.raises(DamagedRecord):
        StoredBlockList.decode(data)
