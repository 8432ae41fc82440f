"""The declared layout of a share's names agrees with the bytes that their codec writes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strongroom.clock import ManualClock
from strongroom.store.core import keys
from strongroom.store.tree.tree_records import NAME, NAME_LINKS, NameRecord

# An id is a stamp, and this is long before any.
FIRST = 1 << 32
assert ManualClock().wall_ticks() > FIRST


@given(st.integers(FIRST, (1 << 64) - 1), st.text(max_size=300), st.booleans())
def test_a_directory_leads_on_and_a_file_does_not(id: int, name: str, is_directory: bool) -> None:
    value = NAME.encode(NameRecord(id, name, is_directory))
    assert NAME_LINKS.next_id(value) == (keys.number(id) if is_directory else None)


@given(st.integers(FIRST, (1 << 64) - 1), st.text(max_size=20))
def test_the_next_key_is_the_one_that_names_have(id: int, name: str) -> None:
    value = NAME.encode(NameRecord(id, "directory", is_directory=True))
    parent = NAME_LINKS.next_id(value)
    assert parent is not None
    key = keys.file_name_key(id, name)
    assert (key.hidden, key.name) == (NAME_LINKS.hidden, parent + name.encode())
