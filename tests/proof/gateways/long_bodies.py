"""Load of long bodies over several gateways: each is written, overwritten, read and deleted.

Every way in which a body comes in is used: blobs that are put whole, of blocks, of pages, appended,
copied from elsewhere, and files. Each name has one writer, so it is known what must be there. A
name whose last request has no answer is left as it is, and is judged by all that may be there.

Lives here: the writers, and what must be there. Must not live here: which gateway is asked
(ways.py).
"""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from tests.conformance import appending, pages
from tests.conformance.answer import Answer
from tests.conformance.blobs import block_list, block_target
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.sources import Source, Sources
from tests.proof.gateways.ways import LOST, NotDone
from tests.proof.postgres.http_store import Clients

KINDS: Final = ("whole", "blocks", "pages", "appended", "copied", "file")
_SIZES: Final = (640 * 1024, 1280 * 1024, 2560 * 1024)
_NAMES: Final = 4  # of each writer
_COPIED_S: Final = 60.0
_PAUSE_S: Final = 0.05
Send = Callable[[], Answer]
Content = bytes | None
"""What is there; None = nothing."""
Step = tuple[Send, Content]
"""A request, and what is there after it."""


class LongBodies:
    """All bodies of one container and of one share of the same name.

    Arguments:
        sources: of copies.
        seed: of the choices.
    """

    def __init__(self, name: str, sources: Sources, seed: int) -> None:
        self._name, self._sources, self._seed = name, sources, seed
        self._may_be: dict[tuple[str, str], list[Content]] = {}
        self._lock = threading.Lock()
        self.acknowledged = 0
        self.damaged: list[str] = []

    def client(self, kind: str, number: int, clients: Clients) -> Callable[[], None]:
        """Return what a client does again and again with names of its own."""
        chance = random.Random(f"{self._seed} {kind} {number}")
        names = [f"{kind}-{number}-{slot}" for slot in range(_NAMES)]
        of = clients.files if kind == "file" else clients.blobs

        def act() -> None:
            slot = chance.randrange(_NAMES)
            if kind == "copied":
                self._await_copy(of, names[slot])
            known = self._may_be.setdefault((kind, names[slot]), [None])
            if known[-1] is not None and chance.random() < 0.4:
                self._compare(of, kind, names[slot])
                return
            is_there = known[-1] is not None
            try:
                for send, content in self._steps(of, kind, names[slot], chance, is_there=is_there):
                    self._do(send, content, known)
            except NotDone:
                raise
            except LOST:
                names[slot] += "x"  # what became of this one is judged at the end
                raise

        return act

    def wrong(self, clients: Clients) -> list[str]:
        """Return the names that do not have what was acknowledged last, or what may have come
        after it."""
        for kind, name in self._may_be:
            self._compare(clients.files if kind == "file" else clients.blobs, kind, name)
        return self.damaged

    def _do(self, send: Send, content: Content, known: list[Content]) -> None:
        """Send one request, and note what may be there now."""
        known.append(content)
        try:
            answer = send()
        except NotDone:
            known.pop()
            raise
        assert answer.status in (200, 201, 202), (answer.status, answer.body[:300])
        known[:] = [content]
        with self._lock:
            self.acknowledged += 1

    def _compare(self, of: Client, kind: str, name: str) -> None:
        may_be = self._may_be[kind, name]
        if kind == "copied":
            self._await_copy(of, name)
        answer = of.get(f"/{self._name}/{name}")
        assert answer.status in (200, 404), (answer.status, answer.body[:300])
        found = answer.body if answer.status == 200 else None
        if found not in may_be:
            expected = " or ".join(map(_shown, may_be))
            self.damaged.append(f"{name} has {_shown(found)}, and not {expected}")

    def _await_copy(self, blobs: Client, name: str) -> None:
        end = time.monotonic() + _COPIED_S
        target = f"/{self._name}/{name}"
        while blobs.head(target).get("x-ms-copy-status") == "pending":
            assert time.monotonic() < end, f"the copy to {name} does not end"
            time.sleep(_PAUSE_S)

    def _steps(
        self, of: Client, kind: str, name: str, chance: random.Random, *, is_there: bool
    ) -> Iterator[Step]:
        target = f"/{self._name}/{name}"
        if is_there and chance.random() < 0.3:
            yield lambda: of.delete(target), None
            return
        body = _body(chance)
        match kind:
            case "whole":
                yield lambda: of.put(target, PUT_BLOB, body), body
            case "blocks":
                yield from self._blocks(of, target, body)
            case "pages":
                yield from _pages(of, target, body)
            case "appended":
                yield lambda: of.put(target, appending.PUT_APPEND), b""
                yield lambda: appending.append(of, target, body), body
            case "copied":
                yield from self._copied(of, target, body)
            case "file":
                yield from _file(of, target, body)

    def _blocks(self, blobs: Client, target: str, body: bytes) -> Iterator[Step]:
        half, before = len(body) // 2, self._may_be["blocks", target.rpartition("/")[2]][-1]
        for number, piece in enumerate((body[:half], body[half:])):
            at = block_target(target, f"{number}")
            # Bound to this turn's values.
            yield lambda at=at, piece=piece: blobs.put(at, (), piece), before  # type: ignore[misc]
        yield lambda: blobs.put(f"{target}?comp=blocklist", (), block_list("0", "1")), body

    def _copied(self, blobs: Client, target: str, body: bytes) -> Iterator[Step]:
        source = self._sources.add(target, Source(body))
        yield lambda: blobs.put(target, {"x-ms-copy-source": source}), body
        self._await_copy(blobs, target.rpartition("/")[2])


def _shown(content: Content) -> str:
    if content is None:
        return "nothing"
    return f"{len(content)} bytes like {content[:4].hex()}" if any(content[:64]) else "zeros"


def _body(chance: random.Random) -> bytes:
    """Return bytes that no other body has, and that every page of it shows."""
    unit = hashlib.blake2b(chance.randbytes(16)).digest()
    return unit * (chance.choice(_SIZES) // len(unit))


def _pages(blobs: Client, target: str, body: bytes) -> Iterator[Step]:
    size = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(len(body))}
    yield lambda: blobs.put(target, size), bytes(len(body))
    yield lambda: pages.send(blobs, target, 0, body), body


def _file(files: Client, target: str, body: bytes) -> Iterator[Step]:
    size = {"x-ms-type": "file", "x-ms-content-length": str(len(body))}
    yield lambda: files.put(target, size), bytes(len(body))
    written = {"x-ms-write": "update", "x-ms-range": f"bytes=0-{len(body) - 1}"}
    yield lambda: files.put(f"{target}?comp=range", written, body), body
