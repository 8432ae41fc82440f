"""Random writers, which know the expected state after the server was killed.

Each worker owns its blobs. So the state of the last acknowledged write must be found, or that of
the one write in progress at the kill. Used by the kill rounds; must not live here: starting and
killing of servers (rounds.py).
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import random
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from urllib.parse import quote

from tests.conformance.answer import Answer
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.tagging import find, names, set_tags, tags

BLOBS = 6
INDEX = "index"
# After so many blocks, an append blob is created again.
LOG_BLOCKS = 30
PAGE_BLOBS = 2
# How many versions are checked, the last acknowledged ones before a kill.
VERSIONS_CHECKED = 40
PAGE = 512
PAGES = 400
SIZES = (0, 10, 1024, 9_000, 70_000, 400_000)


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected state of a blob; `digest` None = it must not exist.

    `tag` is in its metadata. `index` is the value of its tag, by which a search must find it.
    """

    digest: str | None = None
    tag: str = ""
    lease_id: str = ""
    index: str = ""


ABSENT = Expected()


@dataclass(slots=True)
class Blob:
    """One blob: its acknowledged state, and the state of the write in progress, if any.

    `pages` is the acknowledged content of a page blob, None for a block blob.
    """

    name: str
    pages: bytes | None = None
    known: Expected = ABSENT
    pending: Expected | None = None


class Version(NamedTuple):
    """An acknowledged version: its blob, its id, and the digest of its content."""

    target: str
    id: str
    digest: str


@dataclass(slots=True)
class Worker:
    """One client that writes to its own blobs until the server is gone.

    Arguments:
        number: names its blobs.
        seed: determines its actions.
    """

    number: int
    seed: int
    container: str
    acknowledged: int = 0
    failure: str = ""
    blobs: list[Blob] = field(default_factory=list)
    log: Blob = field(init=False)
    logged: list[bytes] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log = Blob(f"w{self.number}/log")
        self.blobs = [Blob(f"w{self.number}/blob {i}") for i in range(BLOBS)]
        self.blobs += [Blob(f"w{self.number}/pages {i}", b"") for i in range(PAGE_BLOBS)]

    def run(self, client: Client, stop: threading.Event) -> None:
        """Write until `stop` is set or the connection breaks."""
        rng = random.Random(self.seed)
        while not stop.is_set():
            blob = rng.choice([*self.blobs, self.log, self.log])
            try:
                if blob is self.log:
                    self._append(client, rng)
                else:
                    self._one(client, blob, rng)
            except (OSError, http.client.HTTPException):
                return
            except AssertionError as error:
                self.failure = str(error)
                return

    def _one(self, client: Client, blob: Blob, rng: random.Random) -> None:
        absent = blob.known.digest is None
        choices: list[Callable[[Client, Blob, random.Random], None]] = [self._put, self._blocks]
        if blob.pages is not None:
            choices = [self._create_pages if absent else self._write_pages]
        if not absent:
            choices += [self._metadata, self._lease, self._copy, self._delete, self._tags]
        rng.choice(choices)(client, blob, rng)

    def _change(
        self, blob: Blob, after: Expected, status: int, send: Callable[[], Answer]
    ) -> Answer:
        blob.pending = after
        answer = send()
        assert answer.status == status, f"{blob.name}: {answer.status} {answer.code}"
        blob.known, blob.pending = after, None
        self.acknowledged += 1
        version = answer.get("x-ms-version-id")
        # The content of other types changes without a new version.
        if version and after.digest is not None and blob.pages is None and blob is not self.log:
            self.versions.append(Version(self._target(blob), version, after.digest))
        return answer

    def _target(self, blob: Blob, query: str = "") -> str:
        return f"/{self.container}/{quote(blob.name)}{query}"

    def _put(self, client: Client, blob: Blob, rng: random.Random) -> None:
        body = rng.randbytes(rng.choice(SIZES))
        tag = uuid.UUID(int=rng.getrandbits(128)).hex
        headers = {**PUT_BLOB, "x-ms-meta-tag": tag, **_lease_header(blob)}
        headers["x-ms-tags"] = f"{INDEX}={tag}&same=yes"
        after = replace(blob.known, digest=_digest(body), tag=tag, index=tag)
        self._change(blob, after, 201, lambda: client.put(self._target(blob), headers, body))

    def _blocks(self, client: Client, blob: Blob, rng: random.Random) -> None:
        parts = [rng.randbytes(rng.choice((1, 5_000, 60_000))) for _ in range(rng.randint(1, 4))]
        ids = [base64.b64encode(f"{i:04}".encode()).decode() for i in range(len(parts))]
        for block_id, part in zip(ids, parts, strict=True):
            target = self._target(blob, f"?comp=block&blockid={quote(block_id, safe='')}")
            answer = client.put(target, _lease_header(blob), part)
            assert answer.status == 201, f"Put Block: {answer.status} {answer.code}"
        xml = "".join(f"<Latest>{block_id}</Latest>" for block_id in ids)
        tag = uuid.UUID(int=rng.getrandbits(128)).hex
        headers = {"x-ms-meta-tag": tag, **_lease_header(blob)}
        after = replace(blob.known, digest=_digest(b"".join(parts)), tag=tag, index="")
        body = f"<BlockList>{xml}</BlockList>".encode()
        target = self._target(blob, "?comp=blocklist")
        self._change(blob, after, 201, lambda: client.put(target, headers, body))

    def _append(self, client: Client, rng: random.Random) -> None:
        """Append to the worker's log, or create it again.

        The bytes are recorded, so that a block whose answer was lost is known too.
        """
        target, known = self._target(self.log), self.log.known
        if known == ABSENT or len(self.logged) >= LOG_BLOCKS:
            headers = {"x-ms-blob-type": "AppendBlob"}
            self._change(self.log, EMPTY, 201, lambda: client.put(target, headers))
            self.logged = []
            return
        if known == EMPTY:
            self.logged = []
        whole = b"".join(self.logged)
        if known.digest != _digest(whole):
            # The block in progress at the kill was not stored.
            self.logged.pop()
            whole = b"".join(self.logged)
            assert known.digest == _digest(whole), f"{self.log.name}: other bytes"
        part = rng.randbytes(rng.choice((1, 700, 9_000, 70_000)))
        self.logged.append(part)
        after = replace(known, digest=_digest(whole + part))
        answer = self._change(
            self.log, after, 201, lambda: client.put(f"{target}?comp=appendblock", {}, part)
        )
        offset, count = len(whole), len(self.logged)
        assert answer["x-ms-blob-append-offset"] == str(offset), f"{self.log.name}: offset"
        assert answer["x-ms-blob-committed-block-count"] == str(count), f"{self.log.name}: count"

    def _create_pages(self, client: Client, blob: Blob, rng: random.Random) -> None:
        tag = uuid.UUID(int=rng.getrandbits(128)).hex
        content = bytes(PAGE * PAGES)
        headers = {
            "x-ms-blob-type": "PageBlob",
            "x-ms-blob-content-length": str(len(content)),
            "x-ms-meta-tag": tag,
            **_lease_header(blob),
        }
        after = replace(blob.known, digest=_digest(content), tag=tag, index="")
        self._change(blob, after, 201, lambda: client.put(self._target(blob), headers))
        blob.pages = content

    def _write_pages(self, client: Client, blob: Blob, rng: random.Random) -> None:
        """Write or clear a range of pages, sometimes after a snapshot; or delete the snapshots."""
        assert blob.pages is not None
        if rng.random() < 0.2:
            answer = client.put(self._target(blob, "?comp=snapshot"), _lease_header(blob))
            assert answer.status == 201, f"Snapshot Blob: {answer.status} {answer.code}"
        if rng.random() < 0.1:
            only = {"x-ms-delete-snapshots": "only", **_lease_header(blob)}
            answer = client.delete(self._target(blob), only)
            assert answer.status == 202, f"Delete Blob: {answer.status} {answer.code}"
        first = rng.randrange(PAGES)
        count = min(PAGES - first, rng.choice((1, 8, 150, 400)))
        clears = rng.random() < 0.3
        data = bytes(count * PAGE) if clears else rng.randbytes(count * PAGE)
        start, end = first * PAGE, (first + count) * PAGE
        content = blob.pages[:start] + data + blob.pages[end:]
        headers = {
            "x-ms-page-write": "clear" if clears else "update",
            "x-ms-range": f"bytes={start}-{end - 1}",
            **_lease_header(blob),
        }
        after = replace(blob.known, digest=_digest(content))
        target, body = self._target(blob, "?comp=page"), b"" if clears else data
        self._change(blob, after, 201, lambda: client.put(target, headers, body))
        blob.pages = content

    def _metadata(self, client: Client, blob: Blob, rng: random.Random) -> None:
        tag = uuid.UUID(int=rng.getrandbits(128)).hex
        headers = {"x-ms-meta-tag": tag, **_lease_header(blob)}
        target = self._target(blob, "?comp=metadata")
        self._change(blob, replace(blob.known, tag=tag), 200, lambda: client.put(target, headers))

    def _tags(self, client: Client, blob: Blob, rng: random.Random) -> None:
        value = uuid.UUID(int=rng.getrandbits(128)).hex if rng.random() < 0.8 else ""
        pairs = {INDEX: value, "same": "yes"} if value else {}
        headers, target = _lease_header(blob), self._target(blob)
        after = replace(blob.known, index=value)
        self._change(blob, after, 204, lambda: set_tags(client, target, pairs, headers))

    def _lease(self, client: Client, blob: Blob, rng: random.Random) -> None:
        target = self._target(blob, "?comp=lease")
        if blob.known.lease_id:
            headers = {"x-ms-lease-action": "release", "x-ms-lease-id": blob.known.lease_id}
            after = replace(blob.known, lease_id="")
            self._change(blob, after, 200, lambda: client.put(target, headers))
            return
        lease_id = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        headers = {
            "x-ms-lease-action": "acquire",
            "x-ms-lease-duration": "-1",
            "x-ms-proposed-lease-id": lease_id,
        }
        after = replace(blob.known, lease_id=lease_id)
        self._change(blob, after, 201, lambda: client.put(target, headers))

    def _copy(self, client: Client, blob: Blob, rng: random.Random) -> None:
        same = [one for one in self.blobs if (one.pages is None) is (blob.pages is None)]
        other = rng.choice(same)
        source = f"{client.url}{self._target(blob)}"
        headers = {"x-ms-copy-source": source, **_lease_header(other)}
        after = replace(other.known, digest=blob.known.digest, tag=blob.known.tag, index="")
        self._change(other, after, 202, lambda: client.put(self._target(other), headers))
        other.pages = blob.pages

    def _delete(self, client: Client, blob: Blob, rng: random.Random) -> None:
        headers = {"x-ms-delete-snapshots": "include", **_lease_header(blob)}
        self._change(blob, ABSENT, 202, lambda: client.delete(self._target(blob), headers))

    def verify(self, client: Client) -> list[str]:
        """Return the differences from the expected state. The found state becomes the known one."""
        lost = []
        for blob in (*self.blobs, self.log):
            found = found_blob(client, self._target(blob), blob)
            lost += self._searched(client, blob, found)
            allowed = [blob.known] if blob.pending is None else [blob.known, blob.pending]
            if found not in allowed:
                lost.append(f"{blob.name}: found {found}, allowed {allowed}")
            blob.known, blob.pending = found, None
            if blob.pages is not None and found.digest is not None:
                blob.pages = client.get(self._target(blob)).body
        for version in self.versions[-VERSIONS_CHECKED:]:
            answer = client.get(f"{version.target}?versionid={version.id}")
            if answer.status != 200 or _digest(answer.body) != version.digest:
                lost.append(f"version {version}: found {answer.status} {answer.code}")
        return lost

    def _searched(self, client: Client, blob: Blob, found: Expected) -> list[str]:
        """Return the differences between searches and the blob, for each value it may have had."""
        values = {blob.known.index, found.index, blob.pending.index if blob.pending else ""} - {""}
        wrong = []
        for value in values:
            hits = names(find(client, f"{INDEX} = '{value}' AND same = 'yes'", self.container))
            if hits != ([blob.name] if value == found.index else []):
                wrong.append(f"{blob.name}: a search for {value} finds {hits}, it has {found}")
        return wrong


def found_blob(client: Client, target: str, blob: Blob) -> Expected:
    """Return the state of a blob."""
    answer = client.get(target)
    if answer.status == 404:
        return ABSENT
    assert answer.status == 200, f"{target}: {answer.status} {answer.code}"
    lease_id = ""
    if answer.get("x-ms-lease-state") == "leased":
        ids = {blob.known.lease_id, blob.pending.lease_id if blob.pending else ""} - {""}
        lease_id = next(
            (one for one in ids if client.head(target, {"x-ms-lease-id": one}).status == 200),
            "another id",
        )
    index = tags(client, target).get(INDEX, "")
    return Expected(_digest(answer.body), answer.get("x-ms-meta-tag") or "", lease_id, index)


def _lease_header(blob: Blob) -> dict[str, str]:
    return {"x-ms-lease-id": blob.known.lease_id} if blob.known.lease_id else {}


def _digest(body: bytes) -> str:
    return f"{len(body)}:{hashlib.sha256(body).hexdigest()[:16]}"


EMPTY = Expected(_digest(b""))
