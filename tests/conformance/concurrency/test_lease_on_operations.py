"""The effect of a lease on every operation on a blob: rules B-LOP-01 to B-LOP-11.

The cells are read from docs/operations/blob/leases.md; the server's clock leads to each state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.conformance.answer import Answer, expect, expect_names
from tests.conformance.blobs import block_list, body, encoded, put, snapshot
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import copy, readable
from tests.conformance.leasing import BREAK_S, DURATION_S, IDS, A, B, Cell, Leased, table
from tests.conformance.running import Running

Headers = dict[str, str]


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of the rows.

    Arguments:
        passes: the answer where the lease does not refuse it: status and code.
        asynchronous: over a held lease it needs one without end.
        writes: whether what it writes makes an ended lease available.
    """

    name: str
    send: Callable[[Client, str, Headers], Answer]
    passes: tuple[int, str | None]
    asynchronous: bool = False
    writes: bool = True
    creates: bool = False

    def __str__(self) -> str:
        return self.name


def _block_list(client: Client, target: str, headers: Headers) -> Answer:
    return client.put(f"{target}?comp=blocklist", headers, block_list())


def _put_block(client: Client, target: str, headers: Headers) -> Answer:
    return client.put(f"{target}?comp=block&blockid={encoded('abc')}", headers, b"x")


def _comp(method: str, query: str, **more: str) -> Callable[[Client, str, Headers], Answer]:
    given = {name.replace("_", "-"): text for name, text in more.items()}
    return lambda client, target, headers: client.send(method, target + query, headers | given)


def _copy(client: Client, target: str, headers: Headers) -> Answer:
    source = f"{client.url}/{target.split('/')[1]}/source"
    return copy(client, source, target, headers)


def _put_blob_from_url(client: Client, target: str, headers: Headers) -> Answer:
    return _copy(client, target, {**headers, **PUT_BLOB})


def _put_block_from_url(client: Client, target: str, headers: Headers) -> Answer:
    source = readable(client, f"{client.url}/{target.split('/')[1]}/source")
    block = f"{target}?comp=block&blockid={encoded('abc')}"
    return client.put(block, {**headers, "x-ms-copy-source": source})


def _copy_from_url(client: Client, target: str, headers: Headers) -> Answer:
    return _copy(client, target, {**headers, "x-ms-requires-sync": "true"})


WRITES = [
    Op("Put Blob", lambda c, t, h: c.put(t, {**h, **PUT_BLOB}, b"x"), (201, None), creates=True),
    Op("Put Block", _put_block, (201, None), writes=False, creates=True),
    Op("Put Blob From URL", _put_blob_from_url, (201, None), creates=True),
    Op("Put Block From URL", _put_block_from_url, (201, None), writes=False, creates=True),
    Op("Put Block List", _block_list, (201, None), creates=True),
    Op("Set Blob Metadata", _comp("PUT", "?comp=metadata", x_ms_meta_a="1"), (200, None)),
    Op("Set Blob Properties", _comp("PUT", "?comp=properties"), (200, None)),
    Op("Delete Blob", lambda c, t, h: c.delete(t, h), (202, None)),
    Op("Copy Blob", _copy, (202, None), asynchronous=True, creates=True),
    Op("Copy Blob From URL", _copy_from_url, (202, None), creates=True),
    Op(
        "Abort Copy Blob",
        _comp("PUT", f"?comp=copy&copyid={B}", x_ms_copy_action="abort"),
        (409, "NoPendingCopyOperation"),
        writes=False,
    ),
]
READS = [
    Op("Get Blob", _comp("GET", ""), (200, None)),
    Op("Get Blob Properties", _comp("HEAD", ""), (200, None)),
    Op("Get Blob Metadata", _comp("GET", "?comp=metadata"), (200, None)),
    Op("Get Block List", _comp("GET", "?comp=blocklist"), (200, None)),
    Op("Snapshot Blob", _comp("PUT", "?comp=snapshot"), (201, None)),
    Op("Set Blob Tier", _comp("PUT", "?comp=tier", x_ms_access_tier="Cool"), (200, None)),
]
CELLS = table("B-LOP")
CREATORS = [op for op in WRITES if op.creates]


def leased_blob(
    server: Running, client: Client, container: str, state: str, infinite: bool
) -> Leased:
    """A blob whose lease is in `state`, beside the source of copies."""
    put(client, f"/{container}/source")
    put(client, f"/{container}/b")
    leased = Leased(server, client, f"/{container}/b")
    if infinite and state in ("leased(A)", "breaking(A)"):
        leased.acquire(duration_s=-1)
        if state == "breaking(A)":
            expect(leased.act("break", lease_break_period=BREAK_S), 202)
    else:
        leased.into(state)
    return leased


def given_id(cell: Cell) -> Headers:
    """The lease header of a request like `write A`."""
    word = cell.request.split()[1]
    return {} if word == "without" else {"x-ms-lease-id": IDS[word]}


def walk(
    server: Running, client: Client, container: str, cell: Cell, op: Op
) -> tuple[Leased, bool]:
    """Send `op` in the cell's state; gives the blob, and whether it passed."""
    leased = leased_blob(server, client, container, cell.state, op.asynchronous)
    before = client.head(leased.target).etag
    answer = op.send(client, leased.target, given_id(cell))
    if cell.outcome.startswith("pass"):
        expect(answer, *op.passes)
        return leased, True
    assert cell.status is not None
    expect(answer, cell.status, cell.code)
    assert client.head(leased.target).etag == before
    return leased, False


@pytest.mark.parametrize("op", WRITES, ids=str)
@pytest.mark.parametrize("cell", [c for c in CELLS if c.request.startswith("write")], ids=str)
def test_writes(server: Running, client: Client, container: str, cell: Cell, op: Op) -> None:
    """B-LOP-01 B-LOP-02 B-LOP-03 B-LOP-07."""
    leased, passed = walk(server, client, container, cell, op)
    if op.name == "Delete Blob" and passed:
        expect(client.head(leased.target), 404, "BlobNotFound")
        return
    after = cell.after if op.writes else cell.state
    leased.check(after if passed else cell.state)


@pytest.mark.parametrize("op", READS, ids=str)
@pytest.mark.parametrize("cell", [c for c in CELLS if c.request.startswith("read")], ids=str)
def test_reads(server: Running, client: Client, container: str, cell: Cell, op: Op) -> None:
    """B-LOP-04 B-LOP-05 B-LOP-06 B-LOP-07."""
    leased, _ = walk(server, client, container, cell, op)
    leased.check(cell.after)


def test_the_tables_are_walked_whole() -> None:
    """B-LOP-07: five states for each of six requests."""
    assert len(CELLS) == 30
    assert {cell.rule for cell in CELLS} == {f"B-LOP-0{number}" for number in range(1, 7)}


@pytest.mark.parametrize("state", ["broken(A)", "expired(A)"])
@pytest.mark.parametrize("op", [op for op in WRITES if op.name != "Delete Blob"], ids=str)
def test_whether_the_old_id_still_counts(
    server: Running, client: Client, container: str, op: Op, state: str
) -> None:
    """B-LOP-01: a write makes the lease available; one that changes nothing does not."""
    leased = leased_blob(server, client, container, state, infinite=False)
    expect(op.send(client, leased.target, {}), *op.passes)
    if op.writes:
        for action in ("renew", "release"):
            answer = leased.act(action, lease_id=A)
            expect(answer, 409, "LeaseIdMismatchWithLeaseOperation")
    else:
        # A broken lease cannot be renewed whatever happened, but its id may release it.
        action = "renew" if state == "expired(A)" else "release"
        expect(leased.act(action, lease_id=A), 200)


@pytest.mark.parametrize("state", ["leased(A)", "breaking(A)"])
@pytest.mark.parametrize("send", [_copy, _copy_from_url], ids=["Copy Blob", "From URL"])
def test_the_source_of_a_copy_needs_no_id(
    server: Running,
    client: Client,
    container: str,
    send: Callable[[Client, str, Headers], Answer],
    state: str,
) -> None:
    """B-LOP-07."""
    put(client, f"/{container}/source", b"leased")
    Leased(server, client, f"/{container}/source").into(state)
    expect(send(client, f"/{container}/b", {}), 202)
    assert body(client, f"/{container}/b") == b"leased"


@pytest.mark.parametrize("op", [*WRITES, *READS], ids=str)
def test_an_id_for_a_missing_blob(client: Client, container: str, op: Op) -> None:
    """B-LOP-08."""
    put(client, f"/{container}/source")
    answer = op.send(client, f"/{container}/none", {"x-ms-lease-id": A})
    if op.creates:
        expect(answer, 412, "LeaseNotPresentWithBlobOperation")
        expect(client.head(f"/{container}/none"), 404, "BlobNotFound")
    else:
        expect(answer, 404, "BlobNotFound")


@pytest.mark.parametrize("state", ["leased(A)", "breaking(A)"])
def test_a_copy_over_a_fixed_lease(
    server: Running, client: Client, container: str, state: str
) -> None:
    """B-LOP-09."""
    leased = leased_blob(server, client, container, state, infinite=False)
    held = {"x-ms-lease-id": A}
    before = client.head(leased.target).etag
    refused = _copy(client, leased.target, held)
    expect(refused, 412, "InfiniteLeaseDurationRequired")
    assert client.head(leased.target).etag == before
    expect(_copy_from_url(client, leased.target, held), 202)
    leased.check(state)


def test_leases_of_snapshots_and_copies(server: Running, client: Client, container: str) -> None:
    """B-LOP-10."""
    target = f"/{container}/source"
    put(client, target)
    Leased(server, client, target).acquire()
    first, second = snapshot(client, target), snapshot(client, target)
    expect(_copy(client, f"/{container}/b", {}), 202)
    assert client.head(f"/{container}/b")["x-ms-lease-state"] == "available"
    assert "x-ms-lease-state" not in client.head(f"{target}?snapshot={first}").names()
    expect(client.delete(f"{target}?snapshot={first}"), 202)
    expect(client.head(f"{target}?snapshot={first}"), 404, "BlobNotFound")
    for word in ("include", "only"):
        option = {"x-ms-delete-snapshots": word}
        expect(client.delete(target, option), 412, "LeaseIdMissing")
        wrong = {**option, "x-ms-lease-id": B}
        expect(client.delete(target, wrong), 412, "LeaseIdMismatchWithBlobOperation")
    expect(client.head(f"{target}?snapshot={second}"), 200)
    for word in ("only", "include"):
        option = {"x-ms-delete-snapshots": word, "x-ms-lease-id": A}
        expect(client.delete(target, option), 202)
    expect(client.head(target), 404, "BlobNotFound")


@pytest.mark.parametrize("op", [*WRITES, *READS], ids=str)
def test_an_id_that_is_no_guid(client: Client, container: str, op: Op) -> None:
    """B-LOP-11."""
    put(client, f"/{container}/source")
    put(client, f"/{container}/b")
    for name in ("b", "none"):
        for text in ("x", A[:-1]):
            answer = op.send(client, f"/{container}/{name}", {"x-ms-lease-id": text})
            if op.name == "Get Blob Properties":
                expect(answer, 400, "InvalidHeaderValue")
            else:
                expect_names(answer, 400, "InvalidHeaderValue", "x-ms-lease-id")


def test_a_lease_over_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    """B-LSE-23: ids and states stay, an expired lease stays expired."""
    data = tmp_path_factory.mktemp("leases") / "data"
    first = Running(data)
    client = first.client()
    expect(client.put("/kept?restype=container"), 201)
    states = {"a": "expired(A)", "b": "broken(A)", "c": "breaking(A)", "d": "leased(A)"}
    for name, state in states.items():
        put(client, f"/kept/{name}")
        Leased(first, client, f"/kept/{name}").into(state)
    first.advance(5)
    client.close()
    first.stop()
    second = Running(data)
    client = second.client()
    for name, state in states.items():
        shown = client.head(f"/kept/{name}")["x-ms-lease-state"]
        assert shown == state.partition("(")[0]
    # Its time does not go back: 5 s were gone before the restart.
    second.advance(DURATION_S - 5 + 1)
    assert client.head("/kept/d")["x-ms-lease-state"] == "expired"
    for name in "abcd":
        expect(Leased(second, client, f"/kept/{name}").act("release", lease_id=A), 200)
    client.close()
    second.stop()
