"""Soft delete under power cuts: deleted states are kept exactly until their retention ends.

Each client has blobs of its own. It knows the head, the snapshots, and all deleted states of each,
with the times until which they must be kept. Undelete Blob makes all of them visible. Must not live
here: the disk and the server (power_cuts.py). Rules: B-SFT-01 to B-SFT-08.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from strongroom.auth.request import Service
from strongroom.services.sweeper import Sweeper
from strongroom.values import TICKS_PER_S
from tests.conformance.answer import Answer, texts
from tests.conformance.blobs import block_list, block_target
from tests.conformance.client import PUT_BLOB
from tests.durability.power_cuts import SocketlessClient

BOX: Final = "/kept"
NAMES: Final = "ab"
SIZES: Final = (10, 3_000, 20_000)
DAY_S: Final = 24 * 3600
_DAY: Final = DAY_S * TICKS_PER_S
_EVER: Final = 1 << 63
_POLICY: Final = (
    b"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>1</Days>"
    b"</DeleteRetentionPolicy></StorageServiceProperties>"
)
Span = tuple[int, int]
"""When a request was served: store time before and after it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A deleted state. An undelete before `must` has to restore it; after `may` it must not."""

    content: bytes
    must: int
    may: int


@dataclass(frozen=True, slots=True)
class Blob:
    """One blob: its head or else its deleted head, live snapshots, and deleted snapshots."""

    head: bytes | None = None
    gone: Kept | None = None
    snapshots: tuple[bytes, ...] = ()
    deleted: tuple[Kept, ...] = ()

    def written(self, content: bytes, span: Span) -> Blob:
        """Return the blob after a write of a new head."""
        displaced = [] if self.head is None else [_kept(self.head, span)]
        displaced += [] if self.gone is None else [self.gone]
        return Blob(content, None, self.snapshots, (*self.deleted, *displaced))

    def without_snapshots(self, span: Span) -> Blob:
        """Return the blob after the deletion of all snapshots."""
        taken = [_kept(content, span) for content in self.snapshots]
        return replace(self, snapshots=(), deleted=(*self.deleted, *taken))

    def without_all(self, span: Span) -> Blob:
        """Return the blob after the deletion of the blob with its snapshots."""
        assert self.head is not None
        left = self.without_snapshots(span)
        return replace(left, head=None, gone=_kept(self.head, span))

    def perhaps_restored(self) -> Blob:
        """Return the blob after an Undelete Blob with an unknown effect, so that no retention need
        end."""
        gone = None if self.gone is None else replace(self.gone, may=_EVER)
        deleted = tuple(replace(one, may=_EVER) for one in self.deleted)
        return replace(self, gone=gone, deleted=deleted)

    def fits(self, head: bytes | None, snapshots: Iterable[bytes], span: Span) -> bool:
        """Whether an Undelete Blob at this time may have had this result."""
        if head is None:
            return self.head is None and (self.gone is None or self.gone.must <= span[1])
        if self.head is None and (self.gone is None or self.gone.may <= span[0]):
            return False
        if head != (self.head if self.gone is None else self.gone.content):
            return False
        must = Counter(one.content for one in self.deleted if one.must > span[1])
        may = Counter(one.content for one in self.deleted if one.may > span[0])
        live, found = Counter(self.snapshots), Counter(snapshots)
        return must + live <= found <= may + live


def _kept(content: bytes, span: Span) -> Kept:
    return Kept(content, span[0] + _DAY, span[1] + _DAY)


@dataclass
class KeptPlay:
    """See Play."""

    service: Service = Service.BLOB
    ready: bool = False
    judged: int = 0
    known: dict[str, Blob] = field(default_factory=dict)
    pending: dict[str, Blob] = field(default_factory=dict)

    async def prepare(self, client: SocketlessClient) -> None:
        """Create the container and set the retention; existing data stays."""
        made = await client.ask("PUT", f"{BOX}?restype=container")
        assert made.status in (201, 409), made
        target = "/?restype=service&comp=properties"
        assert (await client.ask("PUT", target, {}, _POLICY)).status == 202
        self.ready = True

    async def act(self, client: SocketlessClient, worker: int, chance: random.Random) -> None:
        """Send one request on one of the client's blobs, or let time pass."""
        if not chance.randrange(12):
            client.clock.advance(DAY_S / 3)
            return
        name = f"{worker}{chance.choice(NAMES)}"
        blob, target = self.known.setdefault(name, Blob()), f"{BOX}/{name}"
        content = chance.randbytes(8).hex().encode() + b"x" * chance.choice(SIZES)
        kinds = ["put", "put", "list", "undelete"]
        if blob.head is not None:
            kinds += ["snapshot", "snapshot", "delete", "delete", "delete snapshots"]
        kind = chance.choice(kinds)
        before = await client.services.store.now()
        self.pending[name] = _after(blob, kind, content, (before, _EVER - _DAY))
        answer = await _send(client, target, kind, content)
        after = await client.services.store.now()
        if answer.status == 404 and kind == "undelete":
            assert blob.fits(None, (), (before, after)), f"{name} was not restored"
            del self.pending[name]
            return
        assert answer.status in (200, 201, 202), answer
        self.known[name] = _after(blob, kind, content, (before, after))
        del self.pending[name]
        if kind == "undelete":
            await self._look(client, name, (before, after))

    async def _look(self, client: SocketlessClient, name: str, span: Span) -> None:
        """Compare the state after an Undelete Blob with the expected one. It becomes the known
        state."""
        head, snapshots = await _found(client, name)
        candidates = [self.known[name], self.pending.pop(name, self.known[name])]
        fits = any(one.fits(head, snapshots, span) for one in candidates)
        assert fits, f"{name}: found {_short(head)} {list(map(_short, snapshots))} of {candidates}"
        if head is None:
            # Its deleted snapshots come back with the next head, if their retention has not ended.
            found = [one for one in candidates if one.fits(None, (), span)]
            self.known[name] = replace(found[-1], head=None, gone=None, snapshots=())
            return
        self.known[name] = Blob(head, None, tuple(snapshots), ())

    async def judge(self, client: SocketlessClient) -> None:
        """See Play. After the last life everything is deleted, and nothing is left a day later."""
        if not self.ready:
            return
        self.judged += 1
        for name in self.known:
            before = await client.services.store.now()
            await client.ask("PUT", f"{BOX}/{name}?comp=undelete")
            await self._look(client, name, (before, await client.services.store.now()))
        if self.judged < 2:
            return
        for name, blob in self.known.items():
            if blob.head is not None:
                answer = await _send(client, f"{BOX}/{name}", "delete", b"")
                assert answer.status == 202, answer
        client.clock.advance(2 * DAY_S)  # store time may run a little slower than the clock
        await Sweeper(client.services).run_once()
        self.known.clear()
        assert await _listed(client, "") == [], "a state is kept though its retention has ended"


def _after(blob: Blob, kind: str, content: bytes, span: Span) -> Blob:
    if kind in ("put", "list"):
        return blob.written(content, span)
    if kind == "undelete":
        return blob.perhaps_restored()
    if kind == "snapshot":
        assert blob.head is not None
        return replace(blob, snapshots=(*blob.snapshots, blob.head))
    return blob.without_all(span) if kind == "delete" else blob.without_snapshots(span)


async def _send(client: SocketlessClient, target: str, kind: str, content: bytes) -> Answer:
    match kind:
        case "put":
            return await client.ask("PUT", target, PUT_BLOB, content)
        case "list":
            half = len(content) // 2
            for number, part in enumerate((content[:half], content[half:])):
                staged = await client.ask("PUT", block_target(target, str(number)), {}, part)
                assert staged.status == 201, staged
            return await client.ask("PUT", f"{target}?comp=blocklist", {}, block_list("0", "1"))
        case "snapshot" | "undelete":
            return await client.ask("PUT", f"{target}?comp={kind}")
        case _:
            option = "include" if kind == "delete" else "only"
            return await client.ask("DELETE", target, {"x-ms-delete-snapshots": option})


async def _found(client: SocketlessClient, name: str) -> tuple[bytes | None, list[bytes]]:
    """Return the contents of the head (None if there is none) and of the live snapshots."""
    head = await _content(client, f"{BOX}/{name}")
    times = await _listed(client, f"&include=snapshots&prefix={name}")
    snapshots = [await _content(client, f"{BOX}/{name}?snapshot={time}") for time in times]
    return head, [content for content in snapshots if content is not None]


async def _content(client: SocketlessClient, target: str) -> bytes | None:
    answer = await client.ask("GET", target)
    assert answer.status in (200, 404), answer
    return answer.body if answer.status == 200 else None


async def _listed(client: SocketlessClient, query: str) -> list[str]:
    """Return the times of snapshots; with an empty query, the names of all states, even deleted
    ones."""
    wanted = query or "&include=snapshots,deleted"
    answer = await client.ask("GET", f"{BOX}?restype=container&comp=list{wanted}")
    assert answer.status == 200, answer
    return texts(answer.xml, "Blobs/Blob/Snapshot" if query else "Blobs/Blob/Name")


def _short(content: bytes | None) -> str:
    return "none" if content is None else content[:16].decode()
