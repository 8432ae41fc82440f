"""Get Page Ranges: rules B-PAG-13 to B-PAG-16."""

from __future__ import annotations

import pytest

from tests.conformance.answer import expect, expect_names
from tests.conformance.blobs import snapshot
from tests.conformance.client import Client
from tests.conformance.pages import GIB, PAGE, clear, create, listed, ranges, write

TIB = 1024 * GIB


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("bytes=0-511", []),
        ("bytes=0-512", [("P", 512, 1024)]),
        ("bytes=600-700", [("P", 512, 1024)]),
        ("bytes=1024-", [("P", 1024, 1536), ("P", 2560, 3072)]),
        ("bytes=1536-9999999", [("P", 2560, 3072)]),
    ],
)
def test_a_range_of_the_list(
    client: Client, container: str, text: str, found: list[tuple[str, int, int]]
) -> None:
    """B-PAG-13."""
    target = f"/{container}/b"
    create(client, target, 8 * PAGE)
    write(client, target, PAGE, b"x" * (2 * PAGE))
    write(client, target, 5 * PAGE, b"x" * PAGE)
    answer = client.get(f"{target}?comp=pagelist", {"x-ms-range": text})
    assert listed(expect(answer, 200)) == found


def test_ranges_that_cannot_be_listed(client: Client, container: str) -> None:
    """B-PAG-13."""
    target = f"/{container}/b"
    create(client, target, PAGE)
    where = f"{target}?comp=pagelist"
    expect(client.get(where, {"Range": "bytes=512-1023"}), 416, "InvalidRange")
    refused = client.get(where, {"Range": "bytes=x"})
    expect_names(refused, 400, "InvalidHeaderValue", "Range")
    expect(client.get(f"{where}&snapshot=2026-01-02T03:04:05.1234567Z"), 404, "BlobNotFound")


def test_a_list_in_pages(client: Client, container: str) -> None:
    """B-PAG-14."""
    target = f"/{container}/b"
    create(client, target, TIB)
    for number in range(10):
        write(client, target, number * 200 * GIB // 2 if number < 9 else TIB - PAGE, b"x" * PAGE)
    whole = ranges(client, target)
    assert len(whole) == 10
    where, found, marker, count = f"{target}?comp=pagelist&maxresults=3", [], "", 0
    while True:
        answer = expect(client.get(f"{where}&marker={marker}"), 200)
        assert len(listed(answer)) <= 3
        found += listed(answer)
        marker, count = answer.xml.findtext("NextMarker") or "", count + 1
        if not marker:
            break
    assert (found, count) == (whole, 4)
    old = {"x-ms-version": "2020-08-04"}
    assert expect(client.get(f"{target}?comp=pagelist", old), 200).xml.find("NextMarker") is None
    for value in ("0", "-1"):
        refused = client.get(f"{target}?comp=pagelist&maxresults={value}")
        expect_names(refused, 400, "OutOfRangeQueryParameterValue", "maxresults")
    for value in ("x", "511", "9" * 30):
        refused = client.get(f"{target}?comp=pagelist&marker={value}")
        expect_names(refused, 400, "InvalidQueryParameterValue", "marker")
    expect(client.get(f"{target}?comp=pagelist&maxresults=20000"), 200)


def test_what_changed_since_a_snapshot(client: Client, container: str) -> None:
    """B-PAG-15."""
    target = f"/{container}/b"
    create(client, target, TIB)
    write(client, target, 0, b"a" * (8 * PAGE))
    write(client, target, GIB, b"a" * PAGE)
    first = snapshot(client, target)
    assert ranges(client, target, f"&prevsnapshot={first}") == []
    write(client, target, PAGE, b"a" * PAGE)
    expect(clear(client, target, 4 * PAGE, 2 * PAGE), 201)
    expect(clear(client, target, GIB, 10 * GIB), 201)
    write(client, target, 100 * GIB, b"b" * PAGE)
    expect(clear(client, target, 200 * GIB, GIB), 201)
    second = snapshot(client, target)
    write(client, target, 0, b"c" * PAGE)
    changed = [
        ("P", PAGE, 2 * PAGE),
        ("C", 4 * PAGE, 6 * PAGE),
        ("C", GIB, GIB + PAGE),
        ("P", 100 * GIB, 100 * GIB + PAGE),
    ]
    assert ranges(client, f"{target}?snapshot={second}", f"&prevsnapshot={first}") == changed
    assert ranges(client, target, f"&prevsnapshot={second}") == [("P", 0, PAGE)]
    url = {"x-ms-previous-snapshot-url": f"{client.url}{target}?snapshot={second}"}
    answer = client.get(f"{target}?comp=pagelist", url)
    assert listed(expect(answer, 200)) == [("P", 0, PAGE)]
    part = client.get(
        f"{target}?comp=pagelist&prevsnapshot={first}", {"x-ms-range": f"bytes=0-{5 * PAGE - 1}"}
    )
    assert listed(part) == [("P", 0, 2 * PAGE), ("C", 4 * PAGE, 5 * PAGE)]
    one = client.get(f"{target}?comp=pagelist&prevsnapshot={first}&maxresults=1")
    assert listed(one) == [("P", 0, 2 * PAGE)]


def test_what_was_written_and_cleared_since_a_snapshot(client: Client, container: str) -> None:
    """B-PAG-15."""
    target = f"/{container}/b"
    create(client, target, 4 * PAGE)
    first = snapshot(client, target)
    write(client, target, 0, b"a" * (3 * PAGE))
    second = snapshot(client, target)
    expect(clear(client, target, PAGE, PAGE), 201)
    since_first = [("P", 0, PAGE), ("C", PAGE, 2 * PAGE), ("P", 2 * PAGE, 3 * PAGE)]
    assert ranges(client, target, f"&prevsnapshot={first}") == since_first
    assert ranges(client, target, f"&prevsnapshot={second}") == [("C", PAGE, 2 * PAGE)]
    written = [("P", 0, 3 * PAGE)]
    assert ranges(client, f"{target}?snapshot={second}", f"&prevsnapshot={first}") == written
    write(client, target, PAGE, b"b" * PAGE)
    assert ranges(client, target, f"&prevsnapshot={first}") == written
    # A new length clears what lies behind it, and a long clear is applied later.
    for length in (0, 4 * PAGE):
        size = {"x-ms-blob-content-length": str(length)}
        expect(client.put(f"{target}?comp=properties", size), 200)
    assert ranges(client, target, f"&prevsnapshot={first}") == [("C", 0, 3 * PAGE)]


def test_snapshots_that_cannot_be_compared(client: Client, container: str) -> None:
    """B-PAG-16."""
    target, where = f"/{container}/b", f"/{container}/b?comp=pagelist"
    create(client, target, PAGE)
    first, second = snapshot(client, target), snapshot(client, target)
    never = "2020-01-02T03:04:05.1234567Z"
    expect(client.get(f"{where}&prevsnapshot={never}"), 409, "PreviousSnapshotNotFound")
    newer = client.get(f"{where}&snapshot={first}&prevsnapshot={second}")
    expect(newer, 400, "PreviousSnapshotCannotBeNewer")
    refused = client.get(f"{where}&prevsnapshot=yesterday")
    expect_names(refused, 400, "InvalidQueryParameterValue", "prevsnapshot")
    create(client, target, PAGE)
    expect(client.get(f"{where}&prevsnapshot={first}"), 409, "BlobOverwritten")
    name = "x-ms-previous-snapshot-url"
    for value in (
        "",
        "no url",
        f"{client.url}{target}",
        f"{client.url}{target}?snapshot=x",
        f"{client.url}/{container}/other?snapshot={first}",
        f"{client.url}/elsewhere{target}?snapshot={first}",
    ):
        expect_names(client.get(where, {name: value}), 400, "InvalidHeaderValue", name)
