"""The writes that accept conditions, each as one function on the blob `/CONTAINER/b`.

Must not live here: the expected answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.conformance.answer import Answer, expect
from tests.conformance.blobs import block_list, put, stage
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import copy
from tests.conformance.leasing import A, B

Send = Callable[[Client, str, dict[str, str]], Answer]


@dataclass(frozen=True, slots=True)
class Write:
    """One write.

    Arguments:
        send: (client, target, condition headers) -> the answer.
        status: the status of its success.
        creates: whether it creates a blob that does not exist.
        needs_lease: whether the blob must be leased with id A first.
        is_copy: whether its failed conditions have a code of their own.
        has_source: whether it reads the blob `source` of the same container.
    """

    name: str
    send: Send
    status: int
    creates: bool = False
    needs_lease: bool = False
    is_copy: bool = False
    has_source: bool = False

    @property
    def unmet(self) -> str:
        """The code of a condition that fails."""
        return "TargetConditionNotMet" if self.is_copy else "ConditionNotMet"

    def __str__(self) -> str:
        return self.name

    def prepare(self, client: Client, container: str) -> None:
        """Create the other blobs that the write needs."""
        if self.is_copy or self.has_source:
            put(client, f"/{container}/source", b"source")

    def prepare_blob(self, client: Client, target: str) -> Answer:
        """Create the blob, leased if the write needs a lease."""
        made = put(client, target)
        if self.needs_lease:
            lease(client, target, {}, "acquire", proposed_lease_id=A, lease_duration="-1")
        return made


def lease(
    client: Client, target: str, headers: Mapping[str, str], action: str, **fields: str
) -> Answer:
    """A lease operation with conditions."""
    named = {f"x-ms-{name.replace('_', '-')}": text for name, text in fields.items()}
    given = {**headers, **named, "x-ms-lease-action": action}
    return client.put(f"{target}?comp=lease", given)


def _put_block_list(client: Client, target: str, headers: dict[str, str]) -> Answer:
    return client.put(f"{target}?comp=blocklist", headers, block_list())


def _copy(client: Client, target: str, headers: dict[str, str]) -> Answer:
    container = target.split("/")[1]
    source = {"x-ms-copy-source": f"{client.url}/{container}/source"}
    return client.put(target, {**headers, **source})


def _from_url(client: Client, target: str, headers: dict[str, str]) -> Answer:
    container = target.split("/")[1]
    return copy(client, f"{client.url}/{container}/source", target, headers)


def _copy_from_url(client: Client, target: str, headers: dict[str, str]) -> Answer:
    return _from_url(client, target, {**headers, "x-ms-requires-sync": "true"})


def _put_blob_from_url(client: Client, target: str, headers: dict[str, str]) -> Answer:
    return _from_url(client, target, {**headers, **PUT_BLOB})


def _comp(comp: str, more: Mapping[str, str]) -> Send:
    return lambda client, target, headers: client.put(f"{target}?comp={comp}", {**headers, **more})


def _lease(action: str, **fields: str) -> Send:
    return lambda client, target, headers: lease(client, target, headers, action, **fields)


WRITES = [
    Write("Put Blob", lambda c, t, h: c.put(t, {**h, **PUT_BLOB}, b"new"), 201, creates=True),
    Write("Put Blob From URL", _put_blob_from_url, 201, creates=True, has_source=True),
    Write("Put Block List", _put_block_list, 201, creates=True),
    Write("Copy Blob", _copy, 202, creates=True, is_copy=True),
    Write("Copy Blob From URL", _copy_from_url, 202, creates=True, is_copy=True),
    Write("Set Blob Metadata", _comp("metadata", {"x-ms-meta-a": "1"}), 200),
    Write("Set Blob Properties", _comp("properties", {"x-ms-blob-content-type": "a/b"}), 200),
    Write("Snapshot Blob", _comp("snapshot", {}), 201),
    Write("Delete Blob", lambda c, t, h: c.delete(t, h), 202),
    Write("acquire", _lease("acquire", proposed_lease_id=A, lease_duration="15"), 201),
    Write("renew", _lease("renew", lease_id=A), 200, needs_lease=True),
    Write("change", _lease("change", lease_id=A, proposed_lease_id=B), 200, needs_lease=True),
    Write("release", _lease("release", lease_id=A), 200, needs_lease=True),
    Write("break", _lease("break"), 202, needs_lease=True),
]


def staged_only(client: Client, target: str) -> None:
    """Create a blob of uncommitted blocks only."""
    stage(client, target, "1", b"x")


def state_of(client: Client, container: str) -> tuple[object, ...]:
    """Return all that a write can change: content, headers, snapshots."""
    read = client.get(f"/{container}/b")
    kept = [pair for pair in read.headers if pair[0].lower() not in ("date", "x-ms-request-id")]
    listed = client.get(f"/{container}?restype=container&comp=list&include=snapshots")
    count = len(expect(listed, 200).xml.findall("Blobs/Blob"))
    return (read.status, read.body, sorted(kept), count)
