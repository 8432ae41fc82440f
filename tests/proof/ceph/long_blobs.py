"""Load of long blobs on two gateways, with a record of what was answered, and its verification.

Lives here: writers and deleters, by HTTP. A blob's content comes from its name, so it is known
whether it is whole. Must not live here: the faults (test_lost_osd.py).
"""

from __future__ import annotations

import hashlib
import http.client
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from tests.conformance.client import PUT_BLOB, Client
from tests.proof.postgres.http_store import Address, made

_ERRORS: Final = (OSError, http.client.HTTPException)
_WRITERS: Final = 4
_SIZES: Final = (1_100_000, 2_500_000, 4_194_304, 4_194_305, 9_000_000, 20_000_000)
_NO_ANSWER: Final = 0
_END_S: Final = 180.0


class LongBlobs:
    """Writers on some gateways in turn, from the start of a `with` to its end.

    Arguments:
        container: new.

    Attributes:
        kept: names that were answered with success, and not deleted.
        deleted: names whose deletion was answered with success.
        refused: how often each status without success was answered; 0 = no answer.
        moments: when each write was answered with success.
    """

    def __init__(self, gateways: Sequence[Address], container: str, seed: int) -> None:
        self._gateways = gateways
        self._container = container
        self._seed = seed
        self.kept: set[str] = set()
        self.deleted: set[str] = set()
        self.refused: Counter[int] = Counter()
        self.moments: list[float] = []
        self._stopping = threading.Event()
        self._failed: list[BaseException] = []
        made(self._client(0).put(f"/{container}?restype=container"))

    def _client(self, number: int) -> Client:
        return self._gateways[number % len(self._gateways)].clients().blobs

    def __enter__(self) -> Self:
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True)
            for number in range(_WRITERS)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(_END_S)
            assert not thread.is_alive(), "a request hangs"
        assert not self._failed, self._failed

    def _run(self, writer: int) -> None:
        chance = random.Random(self._seed * 100 + writer)
        try:
            for turn in itertools.count():
                if self._stopping.is_set():
                    return
                name = f"{writer}-{turn}-{chance.choice(_SIZES)}"
                if self._succeeds("PUT", writer + turn, name):
                    self.kept.add(name)
                    self.moments.append(time.monotonic())
                    if chance.random() < 0.3:
                        self._delete(writer + turn + 1, name)
        except BaseException as error:
            self._failed.append(error)
            raise

    def _delete(self, number: int, name: str) -> None:
        """A deletion without an answer may have happened."""
        self.kept.remove(name)
        if self._succeeds("DELETE", number, name):
            self.deleted.add(name)

    def _succeeds(self, method: str, number: int, name: str) -> bool:
        client, status = self._client(number), _NO_ANSWER
        target = f"/{self._container}/{name}"
        try:
            if method == "PUT":
                status = client.put(target, PUT_BLOB, content_of(name)).status
            else:
                status = client.delete(target).status
        except _ERRORS:
            pass
        finally:
            client.close()
        if 200 <= status < 300:
            return True
        self.refused[status] += 1
        time.sleep(0.02)
        return False

    def lost(self) -> list[str]:
        """Return what was answered and is not so at some gateway."""
        complaints = []
        clients = [self._client(number) for number in range(len(self._gateways))]
        for turn, name in enumerate(sorted(self.kept | self.deleted)):
            answer = clients[turn % len(clients)].get(f"/{self._container}/{name}")
            if name in self.deleted:
                if answer.status != 404:
                    complaints.append(f"{name} is still there: {answer.status}")
            elif answer.status != 200 or answer.body != content_of(name):
                complaints.append(f"{name}: {answer.status}, {len(answer.body)} bytes")
        return complaints

    def gap_s(self, since: float) -> float:
        """Return the longest time without an answered write, from a moment on."""
        moments = [since, *(at for at in sorted(self.moments) if at > since)]
        return max((later - before for before, later in itertools.pairwise(moments)), default=0.0)


def content_of(name: str) -> bytes:
    """Return the content of a blob, whose name ends with its size."""
    size_bytes = int(name.rpartition("-")[2])
    unit = hashlib.blake2b(name.encode()).digest()
    return (unit * (size_bytes // len(unit) + 1))[:size_bytes]
