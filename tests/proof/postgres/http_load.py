"""Load on servers of one store over HTTP, with a record of what was answered, and its verification.

Lives here: writers of blobs, entities and messages, counters that are raised with If-Match, and the
judgement of what they left. A counter has, of each writer, how often that one raised it. So a
writer whose answer was lost reads whether its increment happened, and none can happen twice unseen.
Must not live here: requests (http_store.py), faults.
"""

from __future__ import annotations

import functools
import http.client
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from tests.conformance.answer import Answer
from tests.proof.postgres.http_store import HttpStore, Reachable, made

_ERRORS: Final = (OSError, http.client.HTTPException)
_PAUSE_S: Final = 0.02
_END_S: Final = 120.0
_KINDS: Final = ("blob", "entity", "message", "counter")
ALL_KINDS: Final = (*_KINDS, "file")
_COUNTERS: Final = 2
_NO_ANSWER: Final = 0
_CHANGED: Final = 412


class Acknowledged(msgspec.Struct, frozen=True):
    """One write that was answered with success.

    Attributes:
        kind: one of `ALL_KINDS`.
        at: when the answer came, on the monotonic clock.
    """

    kind: str
    name: str
    at: float


class Verdict(msgspec.Struct, frozen=True):
    """What became of the writes.

    Attributes:
        acknowledged: how many were answered with success.
        lost: acknowledged writes that are not there.
        twice: messages that are there twice.
        miscounted: counters and writers whose increments are not there exactly once.
        refused: how often each other status was answered; 0 = no answer at all.
    """

    acknowledged: int
    lost: tuple[str, ...]
    twice: tuple[str, ...]
    miscounted: tuple[str, ...]
    refused: dict[int, int]

    @property
    def is_exact(self) -> bool:
        """Whether nothing is lost and nothing happened twice."""
        return not self.lost and not self.twice and not self.miscounted


class HttpLoad:
    """Writers on one address, until `stop`.

    Arguments:
        name: of the container, the table and the queue.
        writers: how many there are of each kind.
        kinds: which kinds there are.
        pause_s: of a writer after each write.

    Attributes:
        acknowledged: what was answered with success, in that order.
        refused: how often each other status was answered; 0 = no answer at all.
    """

    def __init__(
        self,
        address: Reachable,
        name: str,
        writers: int = 2,
        kinds: Sequence[str] = _KINDS,
        pause_s: float = 0.0,
    ) -> None:
        self._address, self._name, self._kinds = address, name, kinds
        self._pause_s = pause_s
        self.acknowledged: list[Acknowledged] = []
        self.refused: Counter[int] = Counter()
        self._raised: Counter[tuple[str, str]] = Counter()
        self._failed: list[BaseException] = []
        self._stopping = threading.Event()
        store = HttpStore(address, name)
        store.make(has_files="file" in kinds)
        for number in range(_COUNTERS):
            made(store.put_document(f"counter{number}", {"total": 0, "by": {}}))
        store.close()
        self._threads = [
            threading.Thread(target=self._run, args=(kind, f"{kind[0]}{one}"), daemon=True)
            for kind in kinds
            for one in range(writers)
        ]
        for thread in self._threads:
            thread.start()

    def acknowledges(self, count: int) -> None:
        """Return once so many more writes of each kind were acknowledged."""
        before = self._counts()
        end = time.monotonic() + _END_S
        while any(self._counts()[kind] - before[kind] < count for kind in self._kinds):
            assert not self._failed, self._failed
            assert time.monotonic() < end, f"no progress: {self.refused}"
            time.sleep(_PAUSE_S)

    def stop(self) -> None:
        """Let each writer finish its write."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(_END_S)
        assert not self._failed, self._failed

    def gap_s(self, since: float) -> float:
        """Return the longest time without an acknowledged write, from a moment on."""
        moments = [since, *(one.at for one in self.acknowledged if one.at > since)]
        return max((later - before for before, later in itertools.pairwise(moments)), default=0.0)

    def verdict(self, at: Reachable | None = None) -> Verdict:
        """Compare what was acknowledged with what is there, or what is there at another address.
        Takes the messages."""
        store = HttpStore(at or self._address, self._name)
        blobs, files = (
            {one.name for one in self.acknowledged if one.kind == kind} for kind in ("blob", "file")
        )
        messages = Counter(store.messages())
        there = {
            "blob": {name for name in blobs if store.has_blob(name)},
            "file": {name for name in files if store.has_file(name)},
            "entity": set(store.entities()),
            "message": set(messages),
        }
        lost = (
            one.name
            for one in self.acknowledged
            if one.kind in there and one.name not in there[one.kind]
        )
        verdict = Verdict(
            len(self.acknowledged),
            tuple(lost),
            tuple(name for name, count in messages.items() if count > 1),
            tuple(self._miscounted(store)),
            dict(self.refused),
        )
        store.close()
        return verdict

    def _counts(self) -> Counter[str]:
        return Counter(one.kind for one in list(self.acknowledged))

    def _run(self, kind: str, writer: str) -> None:
        store = HttpStore(self._address, self._name)
        try:
            for turn in itertools.count():
                if self._stopping.wait(self._pause_s):
                    return
                self._write(store, kind, writer, turn)
        except BaseException as error:
            self._failed.append(error)
            raise
        finally:
            store.close()

    def _write(self, store: HttpStore, kind: str, writer: str, turn: int) -> None:
        name = f"{writer}-{turn}"
        if kind == "counter":
            self._raise(store, writer, f"counter{turn % _COUNTERS}", name)
        elif self._answered(functools.partial(getattr(store, f"put_{kind}"), name)):
            self._acknowledge(kind, name)

    def _raise(self, store: HttpStore, writer: str, counter: str, name: str) -> None:
        """Raise a counter once, however many attempts that takes."""
        mine = self._raised[counter, writer]
        while not self._stopping.is_set():
            read = self._answered(functools.partial(store.get_document, counter))
            if read is None:
                continue
            found = msgspec.json.decode(read.body)
            if found["by"].get(writer, 0) > mine:
                break  # an earlier attempt happened, and its answer was lost
            raised = {"total": found["total"] + 1, "by": {**found["by"], writer: mine + 1}}
            put = functools.partial(store.put_document, counter, raised, read.etag)
            if self._answered(put) is not None:
                self._acknowledge("counter", name)
                break
        else:
            return
        self._raised[counter, writer] += 1

    def _answered(self, send: Callable[[], Answer]) -> Answer | None:
        """Send a request; return None if it has no success."""
        try:
            answer = send()
            status = answer.status
        except _ERRORS:
            status = _NO_ANSWER
        if 200 <= status < 300:
            return answer
        self.refused[status] += 1
        if status != _CHANGED:
            time.sleep(_PAUSE_S)
        return None

    def _acknowledge(self, kind: str, name: str) -> None:
        self.acknowledged.append(Acknowledged(kind, name, time.monotonic()))

    def _miscounted(self, store: HttpStore) -> Iterator[str]:
        for number in range(_COUNTERS):
            counter = f"counter{number}"
            found = store.document(counter)
            if found["total"] != sum(found["by"].values()):
                yield counter
            for (raised, writer), count in self._raised.items():
                # The last attempt of a writer may have happened without an answer.
                if raised == counter and found["by"].get(writer, 0) - count not in (0, 1):
                    yield f"{counter} {writer}"
