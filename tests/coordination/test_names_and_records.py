"""Names become keys and back; records are read as written, and no other value is a record."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.coordination import BadName, CorruptRecord
from strongroom.coordination.schema.names import ESCAPED_MAX, key_of, name_of, unescape
from strongroom.coordination.schema.records import (
    LockRecord,
    Waiter,
    decode_document,
    decode_lock,
    encode_document,
    encode_lock,
)

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(NAMES)
def test_a_name_comes_back(name: str) -> None:
    key = key_of("lock", name)
    assert name_of(key) == name
    assert key.count("/") == 1 and key.isascii() and key.isprintable()
    assert not key.partition("/")[2].startswith(".")


@given(NAMES, NAMES)
def test_two_names_never_share_a_key(one: str, other: str) -> None:
    assert (key_of("lock", one) == key_of("lock", other)) == (one == other)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("invoices", "lock/invoices"),
        ("a.b-c_D9", "lock/a.b-c_D9"),
        (".hidden", "lock/%2Ehidden"),
        ("..", "lock/%2E."),
        ("a/b", "lock/a%2Fb"),
        ("50%", "lock/50%25"),
        ("ä", "lock/%C3%A4"),
    ],
)
def test_how_it_is_escaped(name: str, key: str) -> None:
    assert key_of("lock", name) == key


@pytest.mark.parametrize("name", ["", "x" * (ESCAPED_MAX + 1), "ä" * 100, "\ud800"])
def test_a_name_that_cannot_be(name: str) -> None:
    with pytest.raises(BadName):
        key_of("lock", name)


@pytest.mark.parametrize("escaped", ["", "a b", "%41", "%ff", "%FF", ".a", "%", "a/b"])
def test_what_no_name_is_escaped_to(escaped: str) -> None:
    with pytest.raises(BadName):
        unescape(escaped)


RECORD = LockRecord(
    owner="9f86-1",
    fence=7,
    ttl_s=15,
    seq=3,
    who="host:1",
    since="2026-11-21T08:00:00.000Z",
    queue=(Waiter("a-1", "other:2"),),
    value={"url": "http://x"},
)


def test_a_record_comes_back_and_people_can_read_it() -> None:
    raw = encode_lock(RECORD)
    assert decode_lock("lock/x", raw) == RECORD
    assert json.loads(raw)["fence"] == 7
    free = RECORD.tombstone(4)
    assert decode_lock("lock/x", encode_lock(free)) == free
    assert (free.owner, free.fence, free.queue) == (None, 7, RECORD.queue)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"Set",
        b"[]",
        b"{}",
        b"\xff\xfe",
        encode_lock(RECORD).replace(b'"v":1', b'"v":2'),
        encode_lock(RECORD).replace(b'"fence":7', b'"fence":"7"'),
        encode_lock(RECORD).replace(b'"fence":7', b'"fence":true'),
        encode_lock(RECORD).replace(b'"fence":7', b'"fence":-1'),
        encode_lock(RECORD).replace(b'"fence":7', b'"fence":9223372036854775808'),
        encode_lock(RECORD).replace(b'"ttl":15', b'"ttl":NaN'),
        encode_lock(RECORD).replace(b'"ttl":15', b'"ttl":-1'),
        encode_lock(RECORD).replace(b'"seq":3', b'"seq":null'),
        encode_lock(RECORD).replace(b'"9f86-1"', b"5"),
        encode_lock(RECORD).replace(b'[["a-1","other:2"]]', b"[[1]]"),
        encode_lock(RECORD).replace(b'"ttl":15', b'"ttl":1' + b"0" * 400),
        encode_lock(RECORD).replace(b'"fence":7', b'"fence":1' + b"0" * 5000),
        encode_lock(RECORD).replace(b'"seq":3', b'"seq":3,"value":-Infinity'),
        b"[" * 60_000,
    ],
)
def test_anything_else_is_quoted_and_refused(raw: bytes) -> None:
    with pytest.raises(CorruptRecord, match="lock/x"):
        decode_lock("lock/x", raw)


def test_other_documents_know_their_kind() -> None:
    raw = encode_document({"kind": "barrier", "n": 1})
    assert decode_document("barrier/x", raw, "barrier")["n"] == 1
    for bad in (raw.replace(b"barrier", b"gate"), b"[]", b"x", b"[" * 60_000, b"\xff"):
        with pytest.raises(CorruptRecord):
            decode_document("barrier/x", bad, "barrier")
