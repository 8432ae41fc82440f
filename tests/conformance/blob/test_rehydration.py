"""Archived blobs with a delay until they are readable: rules B-TIR-10 to B-TIR-13."""

from __future__ import annotations

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from tests.conformance.answer import Answer, expect
from tests.conformance.blob.test_set_blob_tier import set_tier
from tests.conformance.blobs import body, put, snapshot, stage
from tests.conformance.client import Client
from tests.conformance.copying import SYNC, copy, source_url
from tests.conformance.listing import blob, page, properties
from tests.conformance.running import Running

HOUR_S = 60 * 60
DELAYS = (15.0 * HOUR_S, 1.0 * HOUR_S)
PRIORITY = "x-ms-rehydrate-priority"
HIGH = {PRIORITY: "High"}
ARCHIVE = {"x-ms-access-tier": "Archive"}


@pytest.fixture(scope="module")
def slow() -> Iterator[Running]:
    running = Running(rehydration_s=DELAYS)
    yield running
    running.stop()


@pytest.fixture
def box(slow: Running) -> Iterator[Client]:
    """A client of an account with the container `box` and the archived blob `b`."""
    client = slow.account()
    expect(client.put("/box?restype=container"), 201)
    put(client, "/box/b", headers=ARCHIVE)
    yield client
    client.close()


def state(client: Client, target: str = "/box/b") -> tuple[str | None, ...]:
    """Tier, archive status and priority."""
    found = expect(client.head(target), 200)
    names = ("x-ms-access-tier", "x-ms-archive-status", PRIORITY)
    return tuple(found.get(name) for name in names)


def pending(tier: str, priority: str = "Standard") -> tuple[str, str, str]:
    return ("Archive", f"rehydrate-pending-to-{tier.lower()}", priority)


@pytest.mark.parametrize("tier", ["Hot", "Cool", "Cold"])
def test_a_rehydration_takes_its_time(slow: Running, box: Client, tier: str) -> None:
    """B-TIR-10, B-TIR-11."""
    made = box.head("/box/b")
    expect(set_tier(box, "/box/b", tier), 202)
    assert state(box) == pending(tier)
    assert box.head("/box/b").etag == made.etag
    listed = properties(blob(page(box, "box"), "b"))
    assert listed["AccessTier"] == "Archive"
    assert listed["ArchiveStatus"] == f"rehydrate-pending-to-{tier.lower()}"
    assert listed["RehydratePriority"] == "Standard"
    slow.advance(DELAYS[0] - 60)
    assert state(box) == pending(tier)
    expect(box.get("/box/b"), 409, "BlobArchived")
    expect(box.put("/box/b?comp=snapshot"), 409, "BlobArchived")
    slow.advance(60)
    assert state(box) == (tier, None, None)
    assert body(box, "/box/b") == b"content"
    after = box.head("/box/b")
    changed = parsedate_to_datetime(after["x-ms-access-tier-change-time"])
    passed_s = (changed - parsedate_to_datetime(made["Last-Modified"])).total_seconds()
    assert DELAYS[0] - 60 < passed_s < DELAYS[0] + 60
    listed = properties(blob(page(box, "box"), "b"))
    assert (listed["AccessTier"], "ArchiveStatus" in listed) == (tier, False)
    taken = snapshot(box, "/box/b")
    assert state(box, f"/box/b?snapshot={taken}") == (tier, None, None)
    expect(stage(box, "/box/b", "1", b"x"), 201)


def test_a_high_priority_is_quicker(slow: Running, box: Client) -> None:
    """B-TIR-10."""
    expect(set_tier(box, "/box/b", "Hot", HIGH), 202)
    assert state(box) == pending("Hot", "High")
    slow.advance(DELAYS[1])
    assert state(box) == ("Hot", None, None)
    expect(set_tier(box, "/box/b", "Hot"), 200)


def test_what_is_asked_of_a_rehydration(slow: Running, box: Client) -> None:
    """B-TIR-12."""
    expect(set_tier(box, "/box/b", "Cool"), 202)
    for other in ("Hot", "Cold", "Archive"):
        expect(set_tier(box, "/box/b", other), 409, "BlobBeingRehydrated")
    slow.advance(HOUR_S)
    expect(set_tier(box, "/box/b", "Cool"), 202)
    slow.advance(DELAYS[0] - HOUR_S)
    assert state(box) == ("Cool", None, None)
    expect(set_tier(box, "/box/b", "Archive"), 200)
    expect(set_tier(box, "/box/b", "Cool"), 202)
    expect(set_tier(box, "/box/b", "Cool", HIGH), 202)
    expect(set_tier(box, "/box/b", "Cool"), 202)
    assert state(box) == pending("Cool", "High")
    slow.advance(DELAYS[1])
    assert state(box) == ("Cool", None, None)


def test_a_high_priority_makes_nothing_later(slow: Running, box: Client) -> None:
    """B-TIR-12."""
    expect(set_tier(box, "/box/b", "Cool"), 202)
    slow.advance(DELAYS[0] - 60)
    expect(set_tier(box, "/box/b", "Cool", HIGH), 202)
    slow.advance(60)
    assert state(box) == ("Cool", None, None)


def test_a_snapshot_is_rehydrated(slow: Running, box: Client) -> None:
    """B-TIR-10, B-TIR-03."""
    put(box, "/box/s")
    taken = f"/box/s?snapshot={snapshot(box, '/box/s')}"
    expect(set_tier(box, taken, "Archive"), 200)
    expect(set_tier(box, taken, "Hot"), 202)
    assert [state(box, one) for one in (taken, "/box/s")] == [pending("Hot"), ("Hot", None, None)]
    slow.advance(DELAYS[0])
    assert (state(box, taken), body(box, taken)) == (("Hot", None, None), b"content")


@pytest.mark.parametrize("kind", [{}, SYNC])
def test_a_copy_of_an_archived_blob_is_rehydrated(
    slow: Running, box: Client, kind: dict[str, str]
) -> None:
    """B-TIR-13."""
    source = source_url(box, "/box/b")

    def copied(headers: dict[str, str]) -> Answer:
        return copy(box, source, "/box/copy", {**kind, **headers})

    expect(copied({}), 409, "BlobArchived")
    expect(copied({"x-ms-access-tier": "Cool"}), 202)
    assert state(box, "/box/copy") == pending("Cool")
    assert box.head("/box/copy")["x-ms-copy-status"] == "success"
    expect(box.get("/box/copy"), 409, "BlobArchived")
    expect(copy(box, source_url(box, "/box/copy"), "/box/more"), 409, "BlobArchived")
    slow.advance(DELAYS[0])
    assert (state(box, "/box/copy"), body(box, "/box/copy")) == (("Cool", None, None), b"content")
    expect(copy(box, source_url(box, "/box/copy"), "/box/more"), 202)
    assert state(box) == ("Archive", None, None)
    put(box, "/box/plain")
    expect(copy(box, source_url(box, "/box/plain"), "/box/new", {"x-ms-access-tier": "Cool"}), 202)
    assert state(box, "/box/new") == ("Cool", None, None)


def test_the_priority_of_a_copy(slow: Running, box: Client) -> None:
    """B-TIR-13."""
    wanted = {"x-ms-access-tier": "Hot", **HIGH}
    expect(copy(box, source_url(box, "/box/b"), "/box/copy", wanted), 202)
    assert state(box, "/box/copy") == pending("Hot", "High")
    slow.advance(DELAYS[1])
    assert body(box, "/box/copy") == b"content"


def test_what_ends_a_rehydration(slow: Running, box: Client) -> None:
    """B-TIR-13."""
    expect(set_tier(box, "/box/b", "Cool"), 202)
    put(box, "/box/b", b"new")
    assert (state(box), body(box, "/box/b")) == (("Hot", None, None), b"new")
    slow.advance(DELAYS[0])
    assert state(box) == ("Hot", None, None)
    put(box, "/box/gone", headers=ARCHIVE)
    expect(set_tier(box, "/box/gone", "Cool"), 202)
    expect(box.delete("/box/gone"), 202)


def test_a_rehydration_goes_on_after_a_restart(tmp_path: Path) -> None:
    """B-TIR-10."""
    first = Running(tmp_path / "data", rehydration_s=DELAYS)
    client = first.client()
    expect(client.put("/box?restype=container"), 201)
    put(client, "/box/b", headers=ARCHIVE)
    expect(set_tier(client, "/box/b", "Cool"), 202)
    client.close()
    first.advance(DELAYS[0] - HOUR_S)
    first.stop()
    second = Running(tmp_path / "data")
    client = second.client()
    assert state(client) == pending("Cool")
    second.advance(HOUR_S)
    assert (state(client), body(client, "/box/b")) == (("Cool", None, None), b"content")
    client.close()
    second.stop()
