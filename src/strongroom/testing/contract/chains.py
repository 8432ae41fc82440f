"""The contract's cases about chains: records that lead to the keys of others.

Lives here: cases only.
"""

# ruff: noqa: D103 - a case's name says what must hold

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from strongroom.engines.base import KEY_BYTES_MAX, Record, Ref, StorageEngine
from strongroom.engines.links import Links
from strongroom.testing.contract.subject import Subject, commit, face, hidden, place, put, writes

_LINKS: Final = Links(hidden=False, head=b"to", id_bytes=2, tail=b".")
_HIDDEN_LINKS: Final = Links(hidden=True, head=b"to", id_bytes=2, tail=b".")
_ROOT: Final = b"00"
_DEEP: Final = 250


def _to(number: int) -> bytes:
    """Return a value that leads to an id, with a text that the layout does not name."""
    return b"to%02x some text." % number


def _at(number: int, name: bytes) -> Ref:
    return face(b"%02x" % number + name)


async def _follow(
    store: StorageEngine, names: Sequence[bytes], links: Links = _LINKS
) -> list[tuple[Ref, Record | None]]:
    return await store.follow(place(), links, _ROOT, names)


async def a_chain_is_followed_from_name_to_name(subject: Subject) -> None:
    store = subject.store
    one = await put(store, (_at(0, b"a"), _to(1)), (_at(1, b"b"), _to(2)))
    two = await put(store, (_at(2, b"c"), b"a leaf"), (_at(2, b"other"), b""))
    assert await _follow(store, [b"a", b"b", b"c"]) == [
        (_at(0, b"a"), Record(_to(1), one)),
        (_at(1, b"b"), Record(_to(2), one)),
        (_at(2, b"c"), Record(b"a leaf", two)),
    ]
    assert await _follow(store, [b"a", b"b"]) == [
        (_at(0, b"a"), Record(_to(1), one)),
        (_at(1, b"b"), Record(_to(2), one)),
    ]
    assert await store.follow(place(), _LINKS, b"02", [b"other"]) == [
        (_at(2, b"other"), Record(b"", two))
    ]


async def a_chain_without_names_is_empty(subject: Subject) -> None:
    store = subject.store
    await put(store, (_at(0, b""), _to(1)))
    assert await _follow(store, []) == []


async def a_chain_ends_at_a_name_that_is_missing(subject: Subject) -> None:
    store = subject.store
    stamp = await put(store, (_at(0, b"a"), _to(1)), (_at(1, b"c"), _to(2)), (_at(0, b"c"), b""))
    found = [(_at(0, b"a"), Record(_to(1), stamp)), (_at(1, b"b"), None)]
    assert await _follow(store, [b"a", b"b", b"c"]) == found
    assert await _follow(store, [b"a", b"b"]) == found
    assert await _follow(store, [b"none", b"a"]) == [(_at(0, b"none"), None)]


async def a_chain_ends_at_a_record_that_leads_nowhere(subject: Subject) -> None:
    """It does so although the record has bytes where an id would be."""
    store = subject.store
    for leaf in (b"to01 some text", b"at01 some text.", b"to01", b"to.", b"."):
        stamp = await put(store, (_at(0, b"a"), leaf), (_at(1, b"b"), _to(2)))
        await put(store, (face(b"b"), b"no id"), (face(b".b"), b"no id"))
        assert await _follow(store, [b"a", b"b"]) == [(_at(0, b"a"), Record(leaf, stamp))]
    shortest = b"to01."
    stamp = await put(store, (_at(0, b"a"), shortest))
    assert [ref for ref, _ in await _follow(store, [b"a", b"b"])] == [_at(0, b"a"), _at(1, b"b")]


async def a_chain_keeps_to_its_partition_and_its_class(subject: Subject) -> None:
    store = subject.store
    await put(store, (hidden(b"00a"), _to(1)), (face(b"00b"), _to(1)))
    stamp = await put(store, (hidden(b"01b"), b"end"), (face(b"01b"), b"another end"))
    await put(store, (face(b"00a", b"q"), b"elsewhere"))
    found = await _follow(store, [b"a", b"b"], _HIDDEN_LINKS)
    assert found[1:] == [(hidden(b"01b"), Record(b"end", stamp))]
    assert await _follow(store, [b"a", b"b"]) == [(_at(0, b"a"), None)]


async def a_chain_may_be_250_records_deep(subject: Subject) -> None:
    store = subject.store
    names = [b"name %d" % depth for depth in range(_DEEP)]
    refs = [_at(depth, name) for depth, name in enumerate(names)]
    values = [_to(depth + 1) for depth in range(_DEEP)]
    stamp = await put(store, *zip(refs, values, strict=True))
    for _ in range(3):  # whether the engine remembers what it has read, or not
        found = await _follow(store, names)
        assert [ref for ref, _ in found] == refs
        assert [record for _, record in found] == [Record(one, stamp) for one in values]


async def a_chain_shows_the_latest_commit(subject: Subject) -> None:
    store = subject.store
    await put(store, (_at(0, b"a"), _to(1)), (_at(1, b"f"), b"old"), (_at(2, b"f"), b"new"))
    for number, expected in ((1, b"old"), (2, b"new"), (1, b"old"), (3, None)):
        await put(store, (_at(0, b"a"), _to(number)))
        for _ in range(3):
            found = [record for _, record in await _follow(store, [b"a", b"f"])]
            assert [record and record.value for record in found] == [_to(number), expected]


async def a_chain_is_read_from_one_snapshot(subject: Subject) -> None:
    """While directories get other ids and move, each read shows one commit's whole chain."""
    store = subject.store
    names = [b"a", b"b", b"c", b"d"]

    def chain(start: int) -> list[tuple[Ref, bytes | None]]:
        ids = [0, *(start + depth for depth in range(1, len(names)))]
        following = [*ids[1:], start]
        return [(_at(ids[at], name), _to(following[at])) for at, name in enumerate(names)]

    async def move() -> None:
        for turn in range(40):
            gone = [(ref, None) for ref, _ in chain(16 * (turn % 2))][1:]
            await put(store, *gone, *chain(16 * ((turn + 1) % 2)))

    await put(store, *chain(0))
    moving = asyncio.create_task(move())
    try:
        while not moving.done():
            found = await _follow(store, names)
            assert len(found) == len(names), "a chain is cut although each commit has a whole one"
            assert len({record and record.version for _, record in found}) == 1, "two commits"
            await asyncio.sleep(0)
    finally:
        await moving


async def the_keys_of_a_chain_have_a_limit(subject: Subject) -> None:
    store = subject.store
    longest = b"n" * (KEY_BYTES_MAX - 2)
    await commit(store, *writes((_at(0, longest), _to(1)), (_at(1, longest), b"end")))
    assert len(await _follow(store, [longest, longest])) == 2
    for names in ([longest + b"n"], [b"none", longest + b"n"]):
        try:
            await _follow(store, names)
        except ValueError:
            continue
        raise AssertionError("a key beyond the limit was looked for")


CASES: Final = (
    a_chain_is_followed_from_name_to_name,
    a_chain_without_names_is_empty,
    a_chain_ends_at_a_name_that_is_missing,
    a_chain_ends_at_a_record_that_leads_nowhere,
    a_chain_keeps_to_its_partition_and_its_class,
    a_chain_may_be_250_records_deep,
    a_chain_shows_the_latest_commit,
    a_chain_is_read_from_one_snapshot,
    the_keys_of_a_chain_have_a_limit,
)
