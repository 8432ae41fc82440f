"""Listing page by page against a naive model: sort, filter, group."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.core import listing
from strongroom.semantics.core.listing import START, PageBuilder, Position, Prefix
from tests.effort import examples
from tests.refusals import outcome

Record = tuple[bytes, bytes, str | None]


class Reader:
    """Records in order, read like an engine's scan: short pages, and a position that need not be a
    record."""

    def __init__(self, records: list[Record], most: int) -> None:
        self.records = sorted(records, key=lambda record: record[:2])
        self.most = most
        self.read_count = 0

    def read(
        self, first: Position, until: Position | None, want: int
    ) -> tuple[list[Record], Position | None]:
        assert until is None or first < until, "nothing can be there"
        inside = [
            record
            for record in self.records
            if record[:2] >= first and (until is None or record[:2] < until)
        ]
        count = min(self.most, want)
        self.read_count += len(inside[:count])
        last = inside[count - 1][:2] if len(inside) > count else None
        return inside[:count], None if last is None else (last[0], last[1] + b"\x00")


def page_through(
    reader: Reader,
    prefix: str,
    delimiter: str,
    max_results: int,
    cut_after: int = 0,
    start_from: str = "",
) -> list[list[str]]:
    """Return all pages; each is cut after `cut_after` reads unless that is 0."""
    pages: list[list[str]] = []
    marker = ""
    for _ in range(10_000):
        start = listing.start_at(listing.decode_marker(marker), start_from)
        page: PageBuilder[str] = PageBuilder(prefix, delimiter, max_results, start)
        reads = 0
        while not page.done:
            page.feed(*reader.read(page.first, page.until, page.records_wanted))
            reads += 1
            if reads == cut_after:
                page.cut()
        pages.append([f"<{item}>" if isinstance(item, Prefix) else item for item in page.items])
        marker = listing.encode_marker(page.marker)
        if not marker:
            return pages
    raise AssertionError("the listing does not end")


def naive(records: list[Record], prefix: str, delimiter: str, start_from: str) -> list[str]:
    found: list[str] = []
    for name, _, item in sorted(records, key=lambda record: record[:2]):
        text = name.decode()
        if item is None or not text.startswith(prefix) or name < start_from.encode():
            continue
        rest = text[len(prefix) :]
        if delimiter and delimiter in rest:
            head = rest[: rest.index(delimiter) + len(delimiter)]
            group = f"<{prefix}{head}>"
            if group not in found:
                found.append(group)
        else:
            found.append(item)
    return found


NAMES = st.text("ab/", min_size=1, max_size=6) | st.text(
    "a/é\U0001f600\uffff", min_size=1, max_size=4
)
RECORDS = st.dictionaries(NAMES, st.lists(st.booleans(), min_size=1, max_size=3), max_size=25).map(
    lambda blobs: [
        (name.encode(), b"k%d" % number, f"{name}#{number}" if seen else None)
        for name, kinds in blobs.items()
        for number, seen in enumerate(kinds)
    ]
)


@examples(900)
@given(
    RECORDS,
    st.text("a/", max_size=3) | st.text("ab/é", max_size=2),
    st.sampled_from(["", "/", "a", "//", "ab", "é", "/a/", "\U0001f600"]),
    st.integers(1, 8),
    st.integers(1, 7),
    st.integers(0, 3),
    st.just("") | NAMES,
)
def test_paging_yields_what_the_naive_model_yields(
    records: list[Record],
    prefix: str,
    delimiter: str,
    max_results: int,
    read_most: int,
    cut_after: int,
    start_from: str,
) -> None:
    reader = Reader(records, read_most)
    pages = page_through(reader, prefix, delimiter, max_results, cut_after, start_from)
    expected = naive(records, prefix, delimiter, start_from)
    assert [item for page in pages for item in page] == expected
    assert all(len(page) <= max_results for page in pages)
    if not cut_after:
        assert all(len(page) == max_results for page in pages[:-1])


TREE = ["a", "a/1", "a/2", "a/b/3", "a/b/4", "a//5", "b", "c/6", "c1/7"]
FOLDED = [
    ("", "/", ["a", "<a/>", "b", "<c/>", "<c1/>"]),
    ("a/", "/", ["<a//>", "a/1", "a/2", "<a/b/>"]),
    ("a", "/", ["a", "<a/>"]),
    ("a/b", "/", ["<a/b/>"]),
    ("a/b/", "/", ["a/b/3", "a/b/4"]),
    ("c", "/", ["<c/>", "<c1/>"]),
    ("", "//", ["a", "<a//>", "a/1", "a/2", "a/b/3", "a/b/4", "b", "c/6", "c1/7"]),
    ("", "b/", ["a", "a//5", "a/1", "a/2", "<a/b/>", "b", "c/6", "c1/7"]),
    ("", "", sorted(TREE)),
    ("d", "/", []),
]


@pytest.mark.parametrize(("prefix", "delimiter", "expected"), FOLDED)
def test_folding(prefix: str, delimiter: str, expected: list[str]) -> None:
    records: list[Record] = [(name.encode(), b"head", name) for name in TREE]
    assert page_through(Reader(records, 4), prefix, delimiter, 100) == [expected]


def many(count: int) -> list[Record]:
    return [(b"dir/%06d" % number, b"head", "x") for number in range(count)]


def test_a_common_prefix_costs_one_read_however_much_it_holds() -> None:
    reader = Reader([*many(20_000), (b"zoo", b"head", "zoo")], 5000)
    assert page_through(reader, "", "/", 5000) == [["<dir/>", "zoo"]]
    assert reader.read_count <= 200


def test_the_largest_page_is_one_read() -> None:
    """The read has one more record, which shows where the next page begins."""
    assert PageBuilder[str]("", "", 5000, START).records_wanted == 5001


def test_a_full_page_without_more_has_no_marker() -> None:
    reader = Reader([*many(3), (b"e", b"head", None), (b"f", b"head", None)], 2)
    assert page_through(reader, "", "", 3) == [["x", "x", "x"]]


def test_a_prefix_of_what_cannot_be_seen_is_not_listed() -> None:
    hidden: list[Record] = [(name, key, None) for name, key, _ in many(10)]
    assert page_through(Reader(hidden, 3), "", "/", 5, cut_after=1)[-1] == []
    seen: list[Record] = [*hidden, (b"dir/x", b"head", "x")]
    pages = page_through(Reader(seen, 3), "", "/", 5, cut_after=1)
    assert [item for page in pages for item in page] == ["<dir/>"]
    assert len(pages) > 2


def test_a_page_may_end_between_the_snapshots_of_one_blob() -> None:
    records: list[Record] = [(b"a", b"%d" % number, f"a{number}") for number in range(5)]
    assert page_through(Reader(records, 10), "", "", 2) == [["a0", "a1"], ["a2", "a3"], ["a4"]]


def test_a_prefix_longer_than_any_name_reads_nothing() -> None:
    assert PageBuilder[str]("a" * 5000, "", 10, listing.START).done


@given(st.binary(max_size=3073), st.binary(max_size=64))
def test_markers_return_the_position(name: bytes, key: bytes) -> None:
    text = listing.encode_marker((name, key))
    assert text.isascii() and text
    assert listing.decode_marker(text) == (name, key)


@pytest.mark.parametrize("char", ["a", "\uffff", "\U0010ffff"])
def test_a_start_longer_than_any_name_lists_what_is_behind_it(char: str) -> None:
    """The marker of a page that begins there can be used in a request."""
    longest = char * (3072 // len(char.encode()))
    position = listing.start_at(START, longest + "b" * 9000)
    assert (longest.encode(), b"") < position <= (longest.encode() + b"b", b"")
    assert listing.decode_marker(listing.encode_marker(position)) == position


def test_no_marker_is_the_start() -> None:
    assert listing.encode_marker(None) == ""
    assert listing.decode_marker("") == listing.decode_marker(None) == listing.START


BAD_MARKERS = [
    "x",
    "AA==",
    "/devstore/c",
    "é",
    listing.encode_marker((b"abc", b""))[:-4],
    "A" * 9000,
]


@pytest.mark.parametrize("marker", BAD_MARKERS)
def test_markers_of_others_are_refused(marker: str) -> None:
    seen = outcome(lambda: listing.decode_marker(marker))
    assert seen == "400 InvalidQueryParameterValue"


@given(st.text() | st.binary().map(lambda raw: raw.hex()))
def test_any_text_is_a_marker_or_refused(marker: str) -> None:
    seen = outcome(lambda: listing.decode_marker(marker))
    assert seen in ("ok", "400 InvalidQueryParameterValue")


def test_a_marker_behind_the_prefix_ends_the_listing() -> None:
    page: PageBuilder[str] = PageBuilder("a", "", 10, (b"z", b""))
    assert page.done
    assert page.marker is None
