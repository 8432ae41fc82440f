"""Random users of a share, which know the expected state after the server was killed.

Each worker owns two directories. Every acknowledged change must be found: every name, and every
byte of every file. The change in progress at the kill was applied completely or not at all. A copy
in progress continues after the restart, and is complete when it has ended. Each snapshot has the
state of its time.

Used by the kill rounds; must not live here: starting and killing of servers (rounds.py).
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.conformance.answer import Answer, texts
from tests.conformance.client import Client

SHARE = "durable"
COPY_S = 60.0
SIZES = (0, 100, 9_000, 70_000, 200_000)
NAMES = ("a", "b", "c")
SNAPSHOTS_MAX = 3
State = dict[str, bytes]
_Change = Callable[[Client, random.Random, State], "tuple[State, Callable[[], Answer], int]"]


def make_share(client: Client) -> None:
    """Create the share that all workers use."""
    assert client.put(f"/{SHARE}?restype=share").status == 201


@dataclass(slots=True)
class FileWorker:
    """One client that changes files in its own directories until the server is gone.

    Arguments:
        number: names its directories.
        seed: determines its actions.
    """

    number: int
    seed: int
    acknowledged: int = 0
    failure: str = ""
    known: State = field(default_factory=dict)
    pending: State | None = None
    snapshots: dict[str, State] = field(default_factory=dict)
    is_begun: bool = False

    @property
    def directories(self) -> tuple[str, str]:
        """Its directories, below the root."""
        return f"left{self.number}", f"right{self.number}"

    def run(self, client: Client, stop: threading.Event) -> None:
        """Work until `stop` is set or the connection breaks."""
        rng = random.Random(self.seed)
        while not stop.is_set() and self.step(client, rng):
            pass

    def step(self, client: Client, rng: random.Random) -> bool:
        """Make one change. Return False if the connection broke or something is wrong."""
        try:
            if self.is_begun:
                self._one(client, rng)
            else:
                self._begin(client)
        except (OSError, http.client.HTTPException):
            return False
        except AssertionError as error:
            self.failure = f"{self.directories[0]}: {error}"
            return False
        return True

    def _begin(self, client: Client) -> None:
        for name in self.directories:
            made = client.put(f"/{SHARE}/{name}?restype=directory")
            assert made.status in (201, 409), made
        self.is_begun = True

    def _one(self, client: Client, rng: random.Random) -> None:
        verbs: list[_Change] = [self._create]
        if self.known:
            verbs += [self._put, self._put, self._clear, self._resize, self._rename, self._delete]
            verbs += [self._copy, self._copy, self._snapshot]
        after, send, status = rng.choice(verbs)(client, rng, dict(self.known))
        self.pending = after
        answer = send()
        assert answer.status == status, f"{answer.status} {answer.code}"
        self.known, self.pending = after, None
        self.acknowledged += 1
        taken = dict(answer.headers).get("x-ms-snapshot")
        if taken is not None:
            self.snapshots[taken] = after

    def _path(self, rng: random.Random) -> str:
        return f"{rng.choice(self.directories)}/{rng.choice(NAMES)}"

    def _create(
        self, client: Client, rng: random.Random, state: State
    ) -> tuple[State, Callable[[], Answer], int]:
        path, size = self._path(rng), rng.choice(SIZES)
        state[path] = bytes(size)
        headers = {"x-ms-type": "file", "x-ms-content-length": str(size)}
        return state, lambda: client.put(f"/{SHARE}/{path}", headers), 201

    def _put(
        self, client: Client, rng: random.Random, state: State
    ) -> tuple[State, Callable[[], Answer], int]:
        path, first, end = self._range(rng, state)
        if first == end:
            return self._create(client, rng, state)
        data = rng.randbytes(end - first)
        before = state[path]
        state[path] = before[:first] + data + before[end:]
        headers = {"x-ms-write": "update", "x-ms-range": f"bytes={first}-{end - 1}"}
        return state, lambda: client.put(f"/{SHARE}/{path}?comp=range", headers, data), 201

    def _clear(
        self, client: Client, rng: random.Random, state: State
    ) -> tuple[State, Callable[[], Answer], int]:
        path, first, end = self._range(rng, state)
        if first == end:
            return self._create(client, rng, state)
        before = state[path]
        state[path] = before[:first] + bytes(end - first) + before[end:]
        headers = {"x-ms-write": "clear", "x-ms-range": f"bytes={first}-{end - 1}"}
        return state, lambda: client.put(f"/{SHARE}/{path}?comp=range", headers), 201

    def _range(self, rng: random.Random, state: State) -> tuple[str, int, int]:
        path = rng.choice(sorted(state))
        first, end = sorted((rng.randint(0, len(state[path])), rng.randint(0, len(state[path]))))
        return path, first, end

    def _resize(
        self, client: Client, rng: random.Random, state: State
    ) -> tuple[State, Callable[[], Answer], int]:
        path, size = rng.choice(sorted(state)), rng.choice(SIZES)
        state[path] = state[path][:size].ljust(size, b"\0")
        headers = {"x-ms-content-length": str(size)}
        return state, lambda: client.put(f"/{SHARE}/{path}?comp=properties", headers), 200

    def _rename(
        self, client: Client, rng: random.Random, state: State
    ) -> tuple[State, Callable[[], Answer], int]:
        old, new = rng.choice(sorted(state)), self._path(rng)
        state[new] = state.pop(old)
        headers = {
            "x-ms-file-rename-source": f"{client.url}/{SHARE}/{old}",
            "x-ms-file-rename-replace-if-exists": "true",
        }
        return state, lambda: client.put(f"/{SHARE}/{new}?comp=rename", headers), 200

    def _copy(
        self, client: Client, rng: random.Random, state: State
    ) -> tuple[State, Callable[[], Answer], int]:
        old, new = rng.choice(sorted(state)), self._path(rng)
        state[new] = state[old]

        def send() -> Answer:
            source = {"x-ms-copy-source": f"{client.url}/{SHARE}/{old}"}
            answer = client.put(f"/{SHARE}/{new}", source)
            if answer.status == 202:
                _await_copy(client, new)
            return answer

        return state, send, 202

    def _delete(
        self, client: Client, rng: random.Random, state: State
    ) -> tuple[State, Callable[[], Answer], int]:
        path = rng.choice(sorted(state))
        del state[path]
        return state, lambda: client.delete(f"/{SHARE}/{path}"), 202

    def _snapshot(
        self, client: Client, rng: random.Random, state: State
    ) -> tuple[State, Callable[[], Answer], int]:
        """Take a snapshot, or delete one if there are enough."""
        target = f"/{SHARE}?restype=share"

        def take() -> Answer:
            for path in state:
                _await_copy(client, path)
            return client.put(target + "&comp=snapshot")

        if len(self.snapshots) < SNAPSHOTS_MAX:
            return state, take, 201
        # From now on the snapshot may be deleted.
        taken = rng.choice(sorted(self.snapshots))
        del self.snapshots[taken]
        return state, lambda: client.delete(f"{target}&sharesnapshot={taken}"), 202

    def verify(self, client: Client) -> list[str]:
        """Return the differences from the expected state. The found state becomes the known one."""
        if not self.is_begun:
            return []
        for directory in self.directories:
            listed = client.get(f"/{SHARE}/{directory}?restype=directory&comp=list")
            for name in texts(listed.xml, "Entries/File/Name"):
                _await_copy(client, f"{directory}/{name}")
        found = self._found(client, "")
        allowed = [one for one in (self.known, self.pending) if one is not None]
        lost = []
        if found not in allowed:
            wanted = [{path: len(data) for path, data in one.items()} for one in allowed]
            seen = {path: len(data) for path, data in found.items()}
            lost.append(f"{self.directories[0]}: {seen} is none of {wanted}, or its bytes differ")
        for taken, state in self.snapshots.items():
            if self._found(client, f"&sharesnapshot={taken}") != state:
                lost.append(f"{self.directories[0]}: the snapshot {taken} is another one now")
        self.known, self.pending = found, None
        return lost

    def _found(self, client: Client, at: str) -> State:
        """The files of its directories; `at` names a snapshot."""
        found: State = {}
        for directory in self.directories:
            listed = client.get(f"/{SHARE}/{directory}?restype=directory&comp=list{at}")
            for name in texts(listed.xml, "Entries/File/Name"):
                answer = client.get(f"/{SHARE}/{directory}/{name}?{at.removeprefix('&')}")
                assert answer.status == 200, answer
                found[f"{directory}/{name}"] = answer.body
        return found


def _await_copy(client: Client, path: str) -> None:
    """Wait until no copy to the file is pending."""
    until = time.monotonic() + COPY_S
    while (found := client.head(f"/{SHARE}/{path}")).get("x-ms-copy-status") == "pending":
        assert time.monotonic() < until, found
        time.sleep(0.002)
    assert found.get("x-ms-copy-status") in (None, "success"), found
