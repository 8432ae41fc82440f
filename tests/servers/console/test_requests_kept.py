"""The rings of kept requests: what they return, and that their bytes are bounded."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from strongroom.limits import MIB
from strongroom.servers.console.requests.kept import (
    FULL_BYTES_MAX,
    SHORT_BYTES_MAX,
    KeptRequests,
    RefusalNote,
    joined,
    packed,
)

ANY_TEXT = st.text(st.characters(), max_size=300)  # with halves of surrogate pairs
FIELDS = st.tuples(
    st.integers(0, 2**62),
    st.floats(0, 1e6),
    st.integers(100, 599),
    ANY_TEXT,
    st.sampled_from(["Get Blob", "Get User Delegation Key", ""]),
    st.sampled_from(["b", "q", "t", "f", ""]),
    ANY_TEXT,
    ANY_TEXT,
    ANY_TEXT,
    ANY_TEXT,
    ANY_TEXT,
    st.booleans(),
)


def short(path: str = "/a/c/b", status: int = 200) -> bytes:
    return packed((1, 0.5, status, "GET", "Get Blob", "b", "a", "c", path, "key1", "", False))


def filled(
    kept: KeptRequests, count: int, status: int = 200, head: bytes = b"GET / HTTP/1.1\r\n\r\n"
) -> None:
    answer = b"HTTP/1.1 200 OK\r\n\r\n"
    for _ in range(count):
        one = short(f"/a/c/{kept.newest + 1}", status)
        if status >= 400:
            kept.add_refused(one, head, answer, False, RefusalNote(None, "text"))
        else:
            kept.add(one, joined(head, answer, False))


@given(FIELDS)
def test_a_request_in_short_takes_256_bytes_at_most(fields: tuple[object, ...]) -> None:
    found = packed(fields)  # type: ignore[arg-type]
    assert len(found) + 2 <= SHORT_BYTES_MAX
    kept = KeptRequests()
    kept.add(found, joined(b"", b"", False))
    record = kept.short(1)
    assert record is not None
    assert (record.began, record.seconds, record.status) == fields[:3]
    assert record.through_console is fields[-1]


def test_what_fits_is_kept_unchanged_and_a_long_path_is_cut() -> None:
    kept = KeptRequests()
    kept.add(short("/a/c/\xe4"), joined(b"", b"", False))
    kept.add(short("/a/c/" + "x\xe4" * 900), joined(b"", b"", False))
    first, second = kept.short(1), kept.short(2)
    assert first is not None and second is not None
    assert first.path == "/a/c/\xe4"
    assert second.path.startswith("/a/c/x\xe4x\xe4") and second.path.endswith(
        "\N{HORIZONTAL ELLIPSIS}"
    )
    assert (second.account, second.container, second.who) == ("a", "c", "key1")


def test_a_cut_container_is_no_valid_name() -> None:
    name = "c" * 100
    kept = KeptRequests()
    fields = (1, 0.5, 200, "GET", "Get Blob", "b", "a" * 100, name, "/x" * 100, "key1", "", False)
    kept.add(packed(fields), joined(b"", b"", False))
    record = kept.short(1)
    assert record is not None
    assert record.container == "c" * 64 and record.account == "a" * 64


def test_the_newest_requests_are_kept_and_the_newest_refused_ones_apart() -> None:
    kept = KeptRequests(short_max=30, full_max=5, refused_max=3)
    filled(kept, 10)
    filled(kept, 4, 403)
    filled(kept, 10)
    assert (kept.newest, kept.oldest) == (24, 1)
    assert [n for n in range(30) if kept.full(n)] == [12, 13, 14, 20, 21, 22, 23, 24]
    found = kept.full(13)
    assert found is not None and found.short.path == "/a/c/13" and found.short.status == 403
    filled(kept, 20)
    assert (kept.newest, kept.oldest) == (44, 15)
    assert kept.short(14) is None and kept.short(45) is None
    assert [n for n, _ in kept.after(40)] == [41, 42, 43, 44]
    assert [n for n, _ in kept.after(0)] == list(range(15, 45))
    assert [n for n, _ in kept.before(18)] == [17, 16, 15]
    assert [n for n, _ in kept.before(99)] == list(range(44, 14, -1))


def test_a_reader_that_is_suspended_goes_on_with_what_is_still_kept() -> None:
    kept = KeptRequests(short_max=10)
    filled(kept, 10)
    reader = kept.after(0)
    assert next(reader)[0] == 1
    filled(kept, 5)
    assert [n for n, _ in reader] == [6, 7, 8, 9, 10]


def test_hostile_requests_take_eight_megabytes_at_most() -> None:
    kept = KeptRequests()
    long = "\u20ac" * 3000
    note = RefusalNote(None, "\U0001f600" * 5000)
    fields = (2**62, 0.5, 403, long, "Get Blob", "b", long, long, long, long, long, False)
    for number in range(12_000):
        head = b"%d" % number + b"x" * 5000
        if number % 3:
            kept.add(packed(fields), joined(head, head, True))
        else:
            kept.add_refused(packed(fields), head, head, True, note)
        if number < 1000:
            one = kept.full(number + 1)
            assert one is not None
            refused = 0 if one.refusal is None else sys.getsizeof(one.refusal.text)
            heads = sys.getsizeof(one.request_head) + sys.getsizeof(one.answer_head)
            assert heads + refused <= FULL_BYTES_MAX - 500
    assert kept.size_bytes() <= 8 * MIB
    filled(kept, 1)
    assert kept.full(kept.newest) is not None
