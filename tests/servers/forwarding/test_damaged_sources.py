"""A file is copied from another gateway, and its data is damaged there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from strongroom.engines.base import DataDamaged, Unavailable
from strongroom.services.file.copies import reading
from strongroom.store.core import extents
from tests.conformance.answer import expect
from tests.conformance.client import Client
from tests.servers.forwarding.pair import FILE, MIB, OTHER, Pair, put_range, until

SIZE_BYTES = 2 * MIB


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    expect(made.there.put("/box/old", {**FILE, "x-ms-content-length": str(SIZE_BYTES)}), 201)
    expect(made.there.put("/box/old?comp=range", put_range(0, 5), b"first"), 201)
    for service, kind in (("file", "share"), ("blob", "container")):
        expect(made.at(OTHER, service).put(f"/target?restype={kind}"), 201)
    yield made
    made.stop()


def url(pair: Pair) -> str:
    return f"{Client(pair.ports['file'], pair.credential).url}/box/old"


def damage(monkeypatch: pytest.MonkeyPatch, sound_bytes: int) -> None:
    """Let the bytes after some be damaged."""

    async def read(*_: object) -> AsyncIterator[bytes]:
        if sound_bytes:
            yield bytes(sound_bytes)
        raise DataDamaged("a piece of it")

    monkeypatch.setattr(extents, "read", read)


@pytest.mark.parametrize("sound_bytes", [0, MIB])
def test_a_copy_of_damaged_bytes_fails_and_no_gateway_counts_as_lost(
    pair: Pair, sound_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(monkeypatch, sound_bytes)
    files, source = pair.at(OTHER), {"x-ms-copy-source": url(pair)}
    expect(files.put("/target/copy", source), 202)
    until(lambda: files.head("/target/copy")["x-ms-copy-status"] != "pending")
    assert files.head("/target/copy")["x-ms-copy-status"] == "failed"
    # A blob of this size is copied before the answer.
    answer = pair.at(OTHER, "blob").put("/target/copy", source)
    assert answer.code == "CannotVerifyCopySource"
    assert pair.counts.failures == 0


UNOPENED = {
    "damaged": (DataDamaged("its record"), 500, "InternalError"),
    "away": (Unavailable("no heartbeat"), 503, "ServerBusy"),
}


@pytest.mark.parametrize("service", ["file", "blob"])
@pytest.mark.parametrize("reason", UNOPENED)
def test_why_a_source_cannot_be_opened_is_told(
    pair: Pair, service: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, status, code = UNOPENED[reason]

    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(reading, "_enter_and_read", fail)
    answer = pair.at(OTHER, service).put("/target/copy", {"x-ms-copy-source": url(pair)})
    expect(answer, status, code)
    assert pair.counts.failures == 0
