"""Operations in any order on a few containers and blobs, with a model of the expected state.

The model is small on purpose. It accepts what the server acknowledges, since leases and conditions
may refuse anything, and checks the consequences. An accepted body is read back whole, a listing
names exactly what exists, and a snapshot never changes. `Channel` checks the form of each answer.
"""

from __future__ import annotations

import itertools
from base64 import b64encode
from dataclasses import dataclass, field, replace
from urllib.parse import quote
from xml.etree import ElementTree as ET

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from strongroom.testing.server import InProcessServer
from tests.conformance.sas import account_sas
from tests.fuzz.channel import Channel, Fields, FuzzRequest, ReceivedAnswer

_runs = itertools.count(1)
NAMES = ("a", "a/b", "é ☃")
LEASE_IDS = tuple(f"{number}0000000-0000-0000-0000-000000000000" for number in (1, 2))
STALE = '"0x8D0000000000001"'

containers = st.integers(0, 1)
names = st.sampled_from(NAMES)
bodies = st.one_of(st.binary(max_size=20), st.sampled_from([b"w" * 900, b"x" * 9000, b"y" * 70000]))
# Stands for the id of the lease that the run holds; other values are no id, or any id.
HELD = "held"
lease_ids = st.sampled_from([HELD, HELD, HELD, HELD, None, *LEASE_IDS])
guards = st.sampled_from(
    [
        *[None] * 12,
        ("If-Match", "*"),
        ("If-None-Match", "*"),
        ("If-Match", STALE),
        ("If-None-Match", STALE),
        ("If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"),
        ("If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"),
    ]
)
Guard = tuple[str, str] | None
block_ids = st.sampled_from([b64encode(bytes([number])).decode() for number in range(3)])


@dataclass(frozen=True, slots=True)
class Blob:
    """The known state of a committed blob."""

    body: bytes
    blocks: tuple[tuple[str, bytes], ...] = ()


@dataclass(slots=True)
class Container:
    """The known state of a container."""

    blobs: dict[str, Blob] = field(default_factory=dict)
    staged: dict[str, dict[str, bytes]] = field(default_factory=dict)
    snapshots: dict[tuple[str, str], bytes] = field(default_factory=dict)


class Sequences(RuleBasedStateMachine):
    """One run: runs share a server, but each has its own containers."""

    server: InProcessServer
    channel: Channel

    def __init__(self) -> None:
        super().__init__()
        self.number = next(_runs)
        self.known: dict[int, Container] = {}
        self.held: dict[tuple[int, str | None], str] = {}
        self.copy_id = LEASE_IDS[0]

    def target(self, container: int, name: str | None = None, query: str = "") -> str:
        path = f"/{self.channel.credential.account}/run-{self.number}-{container}"
        if name is not None:
            path += "/" + quote(name, safe="/")
        return path + (f"?{query}" if query else "")

    def ask(
        self,
        method: str,
        target: str,
        *headers: tuple[str, str],
        body: bytes = b"",
        lease_id: str | None = None,
        guard: Guard = None,
        at: tuple[int, str | None] | None = None,
    ) -> ReceivedAnswer:
        """Send a request, with the lease id `HELD` replaced by that of the lease held at `at`."""
        fields: Fields = headers
        if lease_id == HELD:
            lease_id = None if at is None else self.held.get(at)
        if lease_id is not None:
            fields = (*fields, ("x-ms-lease-id", lease_id))
        if guard is not None:
            fields = (*fields, guard)
        return self.channel.ask(FuzzRequest(method, target, fields, body))

    def wrote(self, container: int, name: str, blob: Blob) -> None:
        there = self.known[container]
        there.blobs[name] = blob
        there.staged.pop(name, None)

    @initialize()
    def begin(self) -> None:
        for container in (0, 1):
            self.create(container)
            for name in NAMES:
                self.put(container, name, b"first", None, None)

    @rule(container=containers)
    def create(self, container: int) -> None:
        got = self.ask("PUT", self.target(container, None, "restype=container"))
        assert got.status == (409 if container in self.known else 201), got
        self.known.setdefault(container, Container())

    @rule(container=containers, lease_id=lease_ids)
    def delete_container(self, container: int, lease_id: str | None) -> None:
        target = self.target(container, None, "restype=container")
        at = (container, None)
        if self.ask("DELETE", target, lease_id=lease_id, at=at).status == 202:
            del self.known[container]
            self.held = {key: held for key, held in self.held.items() if key[0] != container}

    @rule(container=containers, name=names, body=bodies, lease_id=lease_ids, guard=guards)
    def put(
        self, container: int, name: str, body: bytes, lease_id: str | None, guard: Guard
    ) -> None:
        kind = ("x-ms-blob-type", "BlockBlob")
        target = self.target(container, name)
        at = (container, name)
        got = self.ask("PUT", target, kind, body=body, lease_id=lease_id, guard=guard, at=at)
        if got.status == 201:
            self.wrote(container, name, Blob(body))

    @rule(container=containers, name=names, block=block_ids, body=st.binary(min_size=1, max_size=9))
    def stage(self, container: int, name: str, block: str, body: bytes) -> None:
        target = self.target(container, name, f"comp=block&blockid={quote(block)}")
        at = (container, name)
        if self.ask("PUT", target, body=body, lease_id=HELD, at=at).status == 201:
            self.known[container].staged.setdefault(name, {})[block] = body

    @rule(container=containers, name=names, blocks=st.lists(block_ids, max_size=4), guard=guards)
    def commit(self, container: int, name: str, blocks: list[str], guard: Guard) -> None:
        # Hardly any random list would name only existing blocks.
        there = self.known.get(container, Container())
        blocks = sorted({*blocks} & {*there.staged.get(name, {})}) or blocks
        listed = "".join(f"<Latest>{block}</Latest>" for block in blocks)
        body = f"<BlockList>{listed}</BlockList>".encode()
        target = self.target(container, name, "comp=blocklist")
        at = (container, name)
        if self.ask("PUT", target, body=body, guard=guard, lease_id=HELD, at=at).status == 201:
            old = dict(there.blobs[name].blocks) if name in there.blobs else {}
            found = {**old, **there.staged.get(name, {})}
            made = tuple((block, found[block]) for block in blocks)
            self.wrote(container, name, Blob(b"".join(part for _, part in made), made))

    @rule(container=containers, name=names, how=st.sampled_from([None, "include", "only"]))
    def delete(self, container: int, name: str, how: str | None) -> None:
        headers = () if how is None else (("x-ms-delete-snapshots", how),)
        at = (container, name)
        target = self.target(container, name)
        if self.ask("DELETE", target, *headers, lease_id=HELD, at=at).status != 202:
            return
        there = self.known[container]
        if how is not None:
            kept = {key: body for key, body in there.snapshots.items() if key[0] != name}
            there.snapshots = kept
        if how != "only":
            del there.blobs[name]
            there.staged.pop(name, None)
            self.held.pop(at, None)

    @rule(container=containers, name=names, lease_id=lease_ids)
    def snapshot(self, container: int, name: str, lease_id: str | None) -> None:
        target = self.target(container, name, "comp=snapshot")
        got = self.ask("PUT", target, lease_id=lease_id, at=(container, name))
        if got.status == 201:
            there = self.known[container]
            moment = got.get("x-ms-snapshot")
            assert moment is not None
            there.snapshots[name, moment] = there.blobs[name].body

    @rule(
        source=st.tuples(containers, names),
        container=containers,
        name=names,
        at_once=st.booleans(),
        guard=guards,
        lease_id=lease_ids,
    )
    def copy(
        self,
        source: tuple[int, str],
        container: int,
        name: str,
        at_once: bool,
        guard: Guard,
        lease_id: str | None,
    ) -> None:
        url = f"http://127.0.0.1:{self.channel.port}{self.target(*source)}"
        headers = [("x-ms-copy-source", url)]
        if at_once:
            token = account_sas(self.channel.credential, srt="o", sp="r")
            headers = [("x-ms-copy-source", f"{url}?{token}"), ("x-ms-requires-sync", "true")]
        target = self.target(container, name)
        at = (container, name)
        got = self.ask("PUT", target, *headers, guard=guard, lease_id=lease_id, at=at)
        if got.status == 202:
            assert got.get("x-ms-copy-status") == "success", got
            self.copy_id = got.get("x-ms-copy-id") or self.copy_id
            self.wrote(container, name, replace(self.known[source[0]].blobs[source[1]]))

    @rule(container=containers, name=names)
    def abort_copy(self, container: int, name: str) -> None:
        target = self.target(container, name, f"comp=copy&copyid={self.copy_id}")
        assert self.ask("PUT", target, ("x-ms-copy-action", "abort")).status >= 400

    @rule(
        container=containers,
        name=st.one_of(st.none(), names),
        verb=st.sampled_from(["acquire", "acquire", "renew", "change", "release", "break"]),
        given_id=lease_ids,
        proposed=lease_ids,
        seconds=st.sampled_from([-1, 0, 15, 60]),
    )
    def lease(
        self,
        container: int,
        name: str | None,
        verb: str,
        given_id: str | None,
        proposed: str | None,
        seconds: int,
    ) -> None:
        query = "comp=lease" if name is not None else "restype=container&comp=lease"
        at = (container, name)
        headers = [("x-ms-lease-action", verb)]
        if verb == "acquire":
            given_id = None
        if proposed not in (None, HELD):
            headers.append(("x-ms-proposed-lease-id", proposed))
        if verb == "acquire":
            headers.append(("x-ms-lease-duration", str(seconds or 30)))
        elif verb == "break" and seconds >= 0:
            headers.append(("x-ms-lease-break-period", str(seconds)))
        target = self.target(container, name, query)
        got = self.ask("PUT", target, *headers, lease_id=given_id, at=at)
        if got.status in (200, 201):
            self.held.pop(at, None)
            now = got.get("x-ms-lease-id")
            if now is not None and verb != "release":
                self.held[at] = now

    @rule(seconds=st.sampled_from([0.5, 16, 61]))
    def time_passes(self, seconds: float) -> None:
        self.server.advance(seconds)

    @rule(
        container=containers,
        name=names,
        comp=st.sampled_from(["metadata", "metadata", "properties", "properties", "tier"]),
        lease_id=lease_ids,
        guard=guards,
    )
    def set_something(
        self, container: int, name: str, comp: str, lease_id: str | None, guard: Guard
    ) -> None:
        headers = (("x-ms-meta-m", "n"), ("x-ms-blob-content-type", "a/b"))
        target = self.target(container, name, f"comp={comp}")
        at = (container, name)
        self.ask("PUT", target, *headers, lease_id=lease_id, guard=guard, at=at)

    @rule(container=containers, access=st.sampled_from(["", "blob", "container"]))
    def set_acl(self, container: int, access: str) -> None:
        headers = (("x-ms-blob-public-access", access),) if access else ()
        target = self.target(container, None, "restype=container&comp=acl")
        status = self.ask("PUT", target, *headers).status
        assert status == (200 if container in self.known else 404)

    @rule(container=containers, name=names, method=st.sampled_from(["GET", "HEAD"]))
    def read(self, container: int, name: str, method: str) -> None:
        got = self.ask(method, self.target(container, name))
        there = self.known.get(container)
        blob = None if there is None else there.blobs.get(name)
        if blob is None:
            assert got.status == 404, got
            return
        assert got.status == 200 and got.get("Content-Length") == str(len(blob.body)), got
        if method == "GET":
            assert got.body == blob.body
            listed = self.ask("GET", self.target(container, name, "comp=blocklist"))
            found = [one.text for one in ET.fromstring(listed.body).iter("Name")]
            assert found == [block for block, _ in blob.blocks]

    @rule(container=containers)
    def read_snapshots(self, container: int) -> None:
        there = self.known.get(container, Container())
        for (name, moment), body in there.snapshots.items():
            got = self.ask("GET", self.target(container, name, f"snapshot={moment}"))
            assert got.status == 200 and got.body == body, got

    @rule(container=containers, page=st.sampled_from([1, 2, 5000]))
    def list_blobs(self, container: int, page: int) -> None:
        query = f"restype=container&comp=list&include=snapshots&maxresults={page}&marker="
        found: list[tuple[str, str | None]] = []
        marker = ""
        while True:
            got = self.ask("GET", self.target(container, None, query + quote(marker, safe="")))
            if container not in self.known:
                assert got.status == 404
                return
            root = ET.fromstring(got.body.decode("utf-8-sig"))
            for one in root.iter("Blob"):
                found.append((one.findtext("Name") or "", one.findtext("Snapshot")))
            marker = root.findtext("NextMarker") or ""
            if not marker:
                break
        there = self.known[container]
        wanted = [*((name, None) for name in there.blobs), *there.snapshots]
        assert sorted(found, key=str) == sorted(wanted, key=str)
