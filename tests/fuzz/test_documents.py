"""Bodies that are XML, or nearly: Put Block List, Set Blob Tags, Set Container ACL and Set
Blob Service Properties.

For any document, a quick answer says that it was accepted, or why not. No document may make the
server expand, nest or fetch anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from tests.fuzz.channel import Channel, FuzzRequest, ReceivedAnswer
from tests.fuzz.requests import ACL, BLOCK_LIST, HOSTILE, SERVICE_PROPERTIES, TAGS

BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + b"".join(b'<!ENTITY %c "%s">' % (n, b"&%c;" % (n - 1) * 10) for n in range(98, 110))
    + b"]>"
)
EXTERNAL = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
PIECES = (
    b"<", b">", b"</", b"/>", b"&", b";", b"&amp;", b"&#0;", b"&#x110000;", b"&e;", b"<![CDATA[",
    b"]]>", b"<!--", b"-->", b"<?x y?>", b"<!DOCTYPE x>", b'<?xml version="1.1"?>', b"\0", b"\xff",
    b"\xef\xbb\xbf", b"\xfe\xff", b"\xed\xa0\x80", b" ", b"\r\n", b'"', b"=", b' a="b"', b"<a/>",
    b' xmlns="http://x"', b' xmlns:p="u"', b"<p:q/>", b"<Latest>", b"</Latest>", b"<Id>", b"<Days>",
    b"<x>" * 2000, b"<x>" * 20 + b"</x>" * 20, b"9" * 5000, b"-1", b"1e9", b"true", b"\xc2\xb2",
    b'<x a="' + b"a" * 70000 + b'"/>', b"<" + b"n" * 70000 + b"/>",
    b"".join(b' a%d="1"' % number for number in range(3000)),
)  # fmt: skip
ENCODINGS = ("utf-8", "utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7", "cp037")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document goes, and a valid one."""

    query: str
    document: bytes


PLACES = (
    Place("/fuzz-a/blocks?comp=blocklist", BLOCK_LIST),
    Place("/fuzz-a/blocks?comp=tags", TAGS),
    Place("/fuzz-a?restype=container&comp=acl", ACL),
    Place("/?restype=service&comp=properties", SERVICE_PROPERTIES),
)


def send(channel: Channel, place: Place, body: bytes) -> ReceivedAnswer:
    return channel.ask(FuzzRequest("PUT", f"/{channel.credential.account}{place.query}", (), body))


edits = st.lists(
    st.tuples(
        st.sampled_from(["insert", "replace", "delete", "double"]),
        st.integers(0, 5000),
        st.one_of(st.sampled_from(PIECES), st.binary(min_size=1, max_size=4)),
    ),
    min_size=1,
    max_size=4,
)


def edited(document: bytes, given_edits: list[tuple[str, int, bytes]]) -> bytes:
    for how, where, what in given_edits:
        at = where % (len(document) + 1)
        if how == "insert":
            document = document[:at] + what + document[at:]
        elif how == "replace":
            document = document[:at] + what + document[at + len(what) :]
        elif how == "delete":
            document = document[:at] + document[at + len(what) :]
        else:
            document = document[:at] + document[max(0, at - 60) :]
    return document


@examples(700)
@given(place=st.sampled_from(PLACES), changes=edits)
def test_edited_documents(
    stocked: Channel, place: Place, changes: list[tuple[str, int, bytes]]
) -> None:
    send(stocked, place, edited(place.document, changes))


def texts(document: bytes) -> list[tuple[int, int]]:
    """Where text stands in a document: between a `>` and the `<` behind it."""
    spans = []
    at = document.find(b">")
    while at >= 0:
        end = document.find(b"<", at)
        if end > at + 1:
            spans.append((at + 1, end))
        at = document.find(b">", at + 1)
    return spans


@pytest.mark.parametrize("place", PLACES, ids=["blocklist", "tags", "acl", "properties"])
def test_each_text_with_each_hostile_value(stocked: Channel, place: Place) -> None:
    for start, end in texts(place.document):
        for value in HOSTILE:
            escaped = value.replace("&", "&amp;").replace("<", "&lt;").encode("utf-8")
            send(stocked, place, place.document[:start] + escaped + place.document[end:])


@pytest.mark.parametrize("place", PLACES, ids=["blocklist", "tags", "acl", "properties"])
def test_every_prefix_is_refused_or_taken(stocked: Channel, place: Place) -> None:
    for end in range(len(place.document)):
        send(stocked, place, place.document[:end])


@examples(200)
@given(place=st.sampled_from(PLACES), body=st.binary(max_size=200))
def test_random_bytes(stocked: Channel, place: Place, body: bytes) -> None:
    send(stocked, place, body)


@pytest.mark.parametrize("place", PLACES, ids=["blocklist", "tags", "acl", "properties"])
def test_document_types_are_never_expanded(stocked: Channel, place: Place) -> None:
    at = place.document.index(b">", place.document.index(b"<", 5)) + 1
    for prologue in (BOMB, EXTERNAL, b"<!DOCTYPE x>", b'<!DOCTYPE x SYSTEM "http://127.0.0.1:1/">'):
        for entity in (b"", b"&e;", b"&m;"):
            bare = place.document.partition(b"?>")[2] or place.document
            body = prologue + bare[:at] + entity + bare[at:]
            assert send(stocked, place, body).status == 400


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encodings(stocked: Channel, encoding: str) -> None:
    for place in PLACES:
        text = place.document.decode()
        for claim in ("", f'<?xml version="1.0" encoding="{encoding}"?>'):
            bare = text.partition("?>")[2] or text
            send(stocked, place, (claim + bare).encode(encoding))
