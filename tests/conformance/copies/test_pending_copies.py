"""Pending copies, their end and their abort: rules B-CPY-04 to B-CPY-08."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.testing.faults import Fault, FaultRule
from strongroom.testing.server import Server
from tests.conformance.answer import Answer, expect, expect_names
from tests.conformance.blobs import (
    block_list,
    block_target,
    body,
    commit,
    md5,
    put,
    snapshot,
    stage,
)
from tests.conformance.client import PUT_BLOB, Client, Credential
from tests.conformance.copying import SYNC, abort, copy, ended, source_url
from tests.conformance.leasing import A, B
from tests.conformance.running import Running
from tests.conformance.sources import HOST, Source, Sources

MIB = 1024 * 1024
CONTENT = b"c" * 1000
DEVELOPMENT = Credential(DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)


@pytest.fixture(scope="module")
def copying_server() -> Iterator[Running]:
    """A server that may copy from this machine."""
    running = Running(copy_source_hosts=(HOST,))
    yield running
    running.stop()


@dataclass(frozen=True, slots=True)
class Pending:
    """A copy that stays pending until its source is released."""

    client: Client
    target: str
    begun: Answer
    sources: Sources

    @property
    def copy_id(self) -> str:
        return self.begun["x-ms-copy-id"]


@pytest.fixture
def pending(copying_server: Running, new_name: Callable[[], str]) -> Iterator[Pending]:
    """Return a pending copy over an existing blob."""
    client = copying_server.client()
    container = new_name()
    expect(client.put(f"/{container}?restype=container"), 201)
    target = f"/{container}/b"
    put(client, target, b"old", {"x-ms-meta-old": "1"})
    put(client, f"/{container}/source")
    with Sources() as sources:
        headers = (("Content-MD5", md5(CONTENT)), ("Content-Type", "text/theirs"))
        url = sources.add("/held", Source(CONTENT, headers, held=True))
        begun = expect(copy(client, url, target), 202)
        yield Pending(client, target, begun, sources)
    client.close()


def test_what_a_pending_copy_shows(pending: Pending) -> None:
    """B-CPY-04."""
    assert pending.begun["x-ms-copy-status"] == "pending"
    found = expect(pending.client.head(pending.target), 200)
    assert found["x-ms-copy-status"] == "pending"
    assert found["x-ms-copy-id"] == pending.copy_id
    assert found["x-ms-copy-progress"].endswith("/1000")
    assert found["Content-Length"] == "0"
    # The MD5 is that of the content to come.
    assert found.get("Content-MD5") is None
    assert found.get("x-ms-copy-completion-time") is None
    assert found.etag == pending.begun.etag
    assert expect(pending.client.get(pending.target), 200).body == b""
    pending.sources.release()
    done = ended(pending.client, pending.target)
    assert (done["x-ms-copy-status"], done["x-ms-copy-progress"]) == ("success", "1000/1000")
    assert done.etag > pending.begun.etag
    assert (done["Content-MD5"], done["Content-Type"]) == (md5(CONTENT), "text/theirs")
    assert body(pending.client, pending.target) == CONTENT


REFUSED: dict[str, tuple[str, str, dict[str, str], bytes]] = {
    "Put Blob": ("PUT", "", PUT_BLOB, b"x"),
    "Put Block": ("PUT", "?comp=block&blockid=MQ%3D%3D", {}, b"x"),
    "Put Block List": ("PUT", "?comp=blocklist", {}, block_list()),
    "Put Block List of what is not there": ("PUT", "?comp=blocklist", {}, block_list("1")),
    "Set Blob Metadata": ("PUT", "?comp=metadata", {"x-ms-meta-a": "1"}, b""),
    "Set Blob Properties": ("PUT", "?comp=properties", {}, b""),
    "Delete Blob": ("DELETE", "", {}, b""),
    "Delete with snapshots": ("DELETE", "", {"x-ms-delete-snapshots": "include"}, b""),
    "Snapshot Blob": ("PUT", "?comp=snapshot", {}, b""),
    "Set Blob Tier": ("PUT", "?comp=tier", {"x-ms-access-tier": "Cool"}, b""),
    "acquire": (
        "PUT",
        "?comp=lease",
        {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"},
        b"",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_its_destination_refuses(pending: Pending, name: str) -> None:
    """B-CPY-06, B-TIR-09."""
    method, query, headers, data = REFUSED[name]
    answer = pending.client.send(method, pending.target + query, headers, data)
    expect(answer, 409, "PendingCopyOperation")
    found = pending.client.head(pending.target)
    assert (found.etag, found["x-ms-copy-status"]) == (pending.begun.etag, "pending")


@pytest.mark.parametrize("kind", [{}, SYNC], ids=["Copy Blob", "From URL"])
def test_its_destination_refuses_copies(pending: Pending, kind: dict[str, str]) -> None:
    """B-CPY-06."""
    source = source_url(pending.client, pending.target.replace("/b", "/source"))
    answer = copy(pending.client, source, pending.target, kind)
    expect(answer, 409, "PendingCopyOperation")


def test_conditions_come_before_the_pending_copy(pending: Pending) -> None:
    """B-CWR-14."""
    other = {"If-Match": '"0x8D0000000000000"'}
    answer = pending.client.put(f"{pending.target}?comp=metadata", other)
    expect(answer, 412, "ConditionNotMet")


@pytest.mark.parametrize("action", ["renew", "change", "release", "break", "acquire"])
def test_a_leased_destination_refuses_lease_operations(
    copying_server: Running, container_there: str, action: str
) -> None:
    """B-CPY-06."""
    client = copying_server.client()
    target = f"/{container_there}/b"
    put(client, target)
    lease = f"{target}?comp=lease"
    acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    expect(client.put(lease, {**acquire, "x-ms-proposed-lease-id": A}), 201)
    with Sources() as sources:
        url = sources.add("/held", Source(CONTENT, held=True))
        expect(copy(client, url, target, {"x-ms-lease-id": A}), 202)
        headers = {"x-ms-lease-action": action, "x-ms-lease-id": A, "x-ms-lease-duration": "-1"}
        answer = client.put(lease, {**headers, "x-ms-proposed-lease-id": A})
        expect(answer, 409, "PendingCopyOperation")
        sources.release()
        assert ended(client, target)["x-ms-lease-state"] == "leased"
    client.close()


@pytest.fixture
def container_there(copying_server: Running, new_name: Callable[[], str]) -> str:
    """A container on the server that copies."""
    name = new_name()
    client = copying_server.client()
    expect(client.put(f"/{name}?restype=container"), 201)
    client.close()
    return name


def test_abort(pending: Pending) -> None:
    """B-CPY-07."""
    client, target = pending.client, pending.target
    expect(abort(client, target, B), 409, "CopyIdMismatch")
    assert client.head(target)["x-ms-copy-status"] == "pending"
    expect(abort(client, target, pending.copy_id.upper()), 204)
    found = expect(client.head(target), 200)
    assert (found["x-ms-copy-status"], found["Content-Length"]) == ("aborted", "0")
    assert found.etag > pending.begun.etag
    assert found.get("Content-MD5") is None
    assert body(client, target) == b""
    expect(abort(client, target, pending.copy_id), 409, "NoPendingCopyOperation")
    pending.sources.release()
    put(client, target, b"new")
    assert body(client, target) == b"new"


def test_abort_where_nothing_is_pending(client: Client, container: str) -> None:
    """B-CPY-07."""
    put(client, f"/{container}/b")
    expect(abort(client, f"/{container}/b", B), 409, "NoPendingCopyOperation")
    expect(abort(client, f"/{container}/none", B), 404, "BlobNotFound")
    copied = copy(client, source_url(client, f"/{container}/b"), f"/{container}/c")
    answer = abort(client, f"/{container}/c", copied["x-ms-copy-id"])
    expect(answer, 409, "NoPendingCopyOperation")


def test_what_abort_needs(client: Client, container: str) -> None:
    """B-CPY-08."""
    target = f"/{container}/b"
    put(client, target)
    action = "x-ms-copy-action"
    answer = client.put(f"{target}?comp=copy", {action: "abort"})
    expect_names(answer, 400, "MissingRequiredQueryParameter", "copyid")
    answer = client.put(f"{target}?comp=copy&copyid={B}")
    expect_names(answer, 400, "MissingRequiredHeader", action)
    answer = client.put(f"{target}?comp=copy&copyid={B}", {action: "stop"})
    expect_names(answer, 400, "InvalidHeaderValue", action)


def test_snapshots_outlive_an_aborted_copy(copying_server: Running, container_there: str) -> None:
    """B-CPY-07 B-CPY-12."""
    client = copying_server.client()
    target = f"/{container_there}/b"
    put(client, target, b"old")
    taken = snapshot(client, target)
    with Sources() as sources:
        url = sources.add("/held", Source(CONTENT, held=True))
        begun = expect(copy(client, url, target), 202)
        expect(abort(client, target, begun["x-ms-copy-id"]), 204)
    assert body(client, f"{target}?snapshot={taken}") == b"old"
    client.close()


@pytest.mark.parametrize("blocks", [False, True], ids=["one body", "blocks"])
def test_a_pending_copy_goes_on_after_a_kill(tmp_path: Path, blocks: bool) -> None:
    """B-CPY-05."""
    content = bytes(range(256)) * (48 * MIB // 256)
    with Server.start(data=tmp_path / "data") as process:
        client = Client(process.port, DEVELOPMENT)
        expect(client.put("/kept?restype=container"), 201)
        if blocks:
            third = len(content) // 3
            for index in range(3):
                piece = content[index * third : (index + 1) * third]
                expect(client.put(block_target("/kept/source", str(index)), {}, piece), 201)
            commit(client, "/kept/source", ["0", "1", "2"])
        else:
            put(client, "/kept/source", content)
        process.faults.order(FaultRule(operation="Copy Blob", fault=Fault.HOLD_COPY))
        begun = expect(copy(client, source_url(client, "/kept/source"), "/kept/b?timeout=1"), 202)
        process.kill()
        client.close()
        process.restart()
        assert begun["x-ms-copy-status"] == "pending"
        found = ended(client, "/kept/b")
        assert found["x-ms-copy-status"] == "success", found
        assert found["x-ms-copy-id"] == begun["x-ms-copy-id"]
        assert body(client, "/kept/b") == content
        if blocks:
            stage(client, "/kept/b", "9", b"!")
            commit(client, "/kept/b", ["2", "9"])
            assert body(client, "/kept/b") == content[-16 * MIB :] + b"!"
        client.close()
