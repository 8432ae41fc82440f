"""ETags and Last-Modified of blobs: rules B-ETG-01, B-ETG-02, B-ETG-03, B-ETG-05."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from tests.conformance.answer import ETAG, RFC1123, expect, texts
from tests.conformance.blobs import block_list, commit, put, stage
from tests.conformance.client import Client
from tests.conformance.leasing import A, Leased
from tests.conformance.running import Running
from tests.conformance.writes import WRITES, Write

CHANGING: tuple[str, ...] = ("Put Blob", "Put Blob From URL", "Put Block List", "Copy Blob")
CHANGING += ("Copy Blob From URL", "Set Blob Metadata", "Set Blob Properties")


def value(etag: str) -> int:
    """An ETag as the number that it shows."""
    assert re.fullmatch(r'"0x8[0-9A-F]{14}"', etag), etag
    return int(etag.strip('"'), 16)


def test_one_etag_everywhere(client: Client, container: str) -> None:
    """B-ETG-01."""
    made = put(client, f"/{container}/b")
    assert ETAG.fullmatch(made.etag)
    assert value(made.etag) < 1 << 64
    page = expect(client.get(f"/{container}?restype=container&comp=list"), 200)
    assert texts(page.xml, "Blobs/Blob/Properties/Etag") == [made.etag.strip('"')]
    assert client.get(f"/{container}/b").etag == client.head(f"/{container}/b").etag == made.etag
    assert client.get(f"/{container}/b?comp=metadata").etag == made.etag


@pytest.mark.parametrize("write", [w for w in WRITES if w.name in CHANGING], ids=str)
def test_what_gives_a_new_etag(
    server: Running, client: Client, container: str, write: Write
) -> None:
    """B-ETG-02: within one second too. B-ETG-05: the date moves with the second."""
    target = f"/{container}/b"
    write.prepare(client, container)
    last = put(client, target)
    for _ in range(5):
        answer = expect(write.send(client, target, {}), write.status)
        assert value(answer.etag) > value(last.etag)
        read = client.head(target)
        assert (read.etag, read["Last-Modified"]) == (answer.etag, answer["Last-Modified"])
        last = answer
    server.advance(3)
    later = expect(write.send(client, target, {}), write.status)
    gap = parsedate_to_datetime(later["Last-Modified"]) - parsedate_to_datetime(
        last["Last-Modified"]
    )
    assert gap.total_seconds() >= 2


def test_etags_rise_over_deletions(client: Client, container: str) -> None:
    """B-ETG-02."""
    seen = []
    for _ in range(5):
        seen.append(value(put(client, f"/{container}/b", b"the same").etag))
        expect(client.delete(f"/{container}/b"), 202)
    assert seen == sorted(set(seen))


def test_what_leaves_the_etag(server: Running, client: Client, container: str) -> None:
    """B-ETG-03."""
    target = f"/{container}/b"
    made = put(client, target)
    server.advance(3)
    leased = Leased(server, client, target)

    def unchanged() -> None:
        read = expect(client.head(target), 200)
        assert (read.etag, read["Last-Modified"]) == (made.etag, made["Last-Modified"])

    stage(client, target, "1", b"x")
    unchanged()
    expect(client.put(f"{target}?comp=snapshot"), 201)
    unchanged()
    expect(client.put(f"{target}?comp=snapshot", {"x-ms-meta-a": "1"}), 201)
    unchanged()
    leased.acquire()
    unchanged()
    expect(leased.act("renew", lease_id=A), 200)
    unchanged()
    expect(leased.act("change", lease_id=A, proposed_lease_id=A), 200)
    expect(leased.act("break", lease_break_period=0), 202)
    unchanged()
    expect(leased.act("release", lease_id=A), 200)
    unchanged()
    for query in ("", "?comp=metadata", "?comp=blocklist"):
        expect(client.get(target + query), 200)
    unchanged()


@pytest.mark.parametrize("kind", ["put", "list"])
def test_dates(client: Client, container: str, kind: str) -> None:
    """B-ETG-05: RFC 1123, to the second."""
    target = f"/{container}/b"
    made = put(client, target) if kind == "put" else commit(client, target, [])
    assert RFC1123.fullmatch(made["Last-Modified"])
    assert client.head(target)["Last-Modified"] == made["Last-Modified"]


def test_etags_and_dates_over_a_restart(tmp_path: Path) -> None:
    """B-ETG-02 B-ETG-05: also after store time ran ahead of the wall."""
    first = Running(tmp_path / "data")
    client = first.client()
    expect(client.put("/kept?restype=container"), 201)
    first.advance(100)
    before = put(client, "/kept/b")
    stage(client, "/kept/b", "1", b"x")
    client.close()
    first.stop()
    second = Running(tmp_path / "data")
    client = second.client()
    read = expect(client.get("/kept/b"), 200)
    assert (read.etag, read["Last-Modified"]) == (before.etag, before["Last-Modified"])
    after = expect(client.put("/kept/b?comp=blocklist", {}, block_list("1")), 201)
    assert value(after.etag) > value(before.etag)
    earlier = parsedate_to_datetime(before["Last-Modified"])
    assert parsedate_to_datetime(after["Last-Modified"]) >= earlier
    client.close()
    second.stop()
