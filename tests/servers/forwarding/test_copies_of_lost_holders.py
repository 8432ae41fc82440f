"""A file is copied from another gateway, which goes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strongroom.servers.forwarding import forwarder
from tests.conformance.answer import expect
from tests.conformance.client import Client
from tests.servers.forwarding.pair import FILE, HOLDER, MIB, OTHER, Pair, put_range, until

PIECE_BYTES, PIECES = 4 * MIB, 8
SIZE_BYTES = PIECES * PIECE_BYTES
DATA = bytes(range(256)) * (PIECE_BYTES // 256)


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    monkeypatch.setattr(forwarder, "_PATIENCE_S", 0.1)
    made = Pair()
    yield made
    made.stop()


def with_big_file(pair: Pair) -> str:
    """Return the URL of a file in the holder's share."""
    headers = {**FILE, "x-ms-content-length": str(SIZE_BYTES)}
    expect(pair.there.put("/box/big", headers), 201)
    for number in range(PIECES):
        span = put_range(number * PIECE_BYTES, PIECE_BYTES)
        expect(pair.there.put("/box/big?comp=range", span, DATA), 201)
    # The balancer's port: a copy's source is looked up by it.
    return f"{Client(pair.ports['file'], pair.credential).url}/box/big"


def kill_holder_at_commit(pair: Pair, last: int) -> None:
    """The holder dies before a commit of the other gateway. More of the file is left then than the
    connection between the two has room for."""
    commits = 0

    async def count() -> None:
        nonlocal commits
        commits += 1
        if commits == last:
            pair.both[HOLDER].kill()

    pair.both[OTHER].store.before_commit = count


@pytest.mark.parametrize(("service", "commits"), [("file", 3), ("blob", 2)])
def test_a_copy_goes_on_when_another_gateway_has_the_share(
    pair: Pair, service: str, commits: int
) -> None:
    source = with_big_file(pair)
    client = pair.at(OTHER, service)
    kind = "share" if service == "file" else "container"
    expect(client.put(f"/target?restype={kind}"), 201)
    kill_holder_at_commit(pair, commits)
    made = expect(client.put("/target/copy", {"x-ms-copy-source": source}), 202)
    assert made["x-ms-copy-status"] == "pending"
    until(lambda: pair.counts.failures > 0)
    seen = expect(client.head("/target/copy"), 200)
    assert seen["x-ms-copy-status"] == "pending", seen.get("x-ms-copy-status-description")
    pair.advance(11)
    until(lambda: client.head("/target/copy")["x-ms-copy-status"] != "pending")
    seen = expect(client.get("/target/copy"), 200)
    assert seen["x-ms-copy-status"] == "success", seen.get("x-ms-copy-status-description")
    assert seen.body == DATA * PIECES
