"""Random users of a share over both protocols, which know the expected state after a kill.

Each worker owns two directories, and makes each change over REST or over SMB at random. It verifies
the same as FileWorker, and then reads half of the files over SMB too.

Must not live here: starting and killing of servers (rounds.py), the SMB client
(tests/servers/smb/sockets.py).
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from strongroom.semantics.file.accesses import Disposition
from strongroom.servers.smb.refusals import SmbError
from strongroom.wire.smb.header import FileId
from tests.conformance.client import Client
from tests.durability.file_workload import SHARE, SIZES, FileWorker, State
from tests.servers.smb.client import Closed
from tests.servers.smb.sockets import SmbMount

LOST: Final = (OSError, Closed, TimeoutError)
"""The exceptions of a command that gets no answer."""
_END_OF_FILE, _WRITE_BYTES_MAX = 20, 1 << 20
Command = Callable[[SmbMount], Awaitable[None]]


@dataclass(slots=True)
class MixedWorker(FileWorker):
    """A client of both protocols.

    Arguments:
        smb_port: the SMB port.
    """

    smb_port: int = 0
    smb_acknowledged: int = 0

    def run(self, client: Client, stop: threading.Event) -> None:
        """Work until `stop` is set or a connection breaks."""
        asyncio.run(self._work(client, stop))

    async def _work(self, client: Client, stop: threading.Event) -> None:
        try:
            async with SmbMount(self.smb_port, SHARE) as mount:
                await self._changes(client, mount, stop)
        except LOST:
            return
        except SmbError as refused:
            self.failure = f"{self.directories[0]}: {refused}"

    async def _changes(self, client: Client, mount: SmbMount, stop: threading.Event) -> None:
        rng = random.Random(self.seed)
        while not stop.is_set():
            if self.is_begun and rng.randrange(2):
                await self._one_over_smb(mount, rng)
            elif not await asyncio.to_thread(self.step, client, rng):
                return

    async def _one_over_smb(self, mount: SmbMount, rng: random.Random) -> None:
        verbs = [self._smb_create]
        if self.known:
            verbs += [self._smb_write, self._smb_write, self._smb_resize]
            verbs += [self._smb_rename, self._smb_delete]
        after, command = rng.choice(verbs)(rng, dict(self.known))
        self.pending = after
        await command(mount)
        self.known, self.pending = after, None
        self.acknowledged += 1
        self.smb_acknowledged += 1

    def _smb_create(self, rng: random.Random, state: State) -> tuple[State, Command]:
        path = self._path(rng)
        state[path] = b""

        async def create(mount: SmbMount) -> None:
            await _opened(mount, path, _nothing, Disposition.OVERWRITE_IF)

        return state, create

    def _smb_write(self, rng: random.Random, state: State) -> tuple[State, Command]:
        """Return a WRITE, which is one commit. It may begin beyond the end, which leaves zeros
        before it."""
        path, data = rng.choice(sorted(state)), rng.randbytes(rng.choice(SIZES) + 1)
        first = rng.randint(0, len(state[path]) + 5_000)
        before = state[path].ljust(first, b"\0")
        state[path] = before[:first] + data + before[first + len(data) :]

        async def write(mount: SmbMount) -> None:
            await _opened(mount, path, lambda file: mount.write(file, first, data))

        return state, write

    def _smb_resize(self, rng: random.Random, state: State) -> tuple[State, Command]:
        path, size = rng.choice(sorted(state)), rng.choice(SIZES)
        state[path] = state[path][:size].ljust(size, b"\0")

        async def resize(mount: SmbMount) -> None:
            wanted = size.to_bytes(8, "little")
            await _opened(mount, path, lambda file: mount.change(file, _END_OF_FILE, wanted))

        return state, resize

    def _smb_rename(self, rng: random.Random, state: State) -> tuple[State, Command]:
        old, new = rng.choice(sorted(state)), self._path(rng)
        state[new] = state.pop(old)

        async def rename(mount: SmbMount) -> None:
            target = _backslashes(new)
            await _opened(mount, old, lambda file: mount.rename(file, target, replaces=True))

        return state, rename

    def _smb_delete(self, rng: random.Random, state: State) -> tuple[State, Command]:
        """Return a deletion by the last close, whose answer acknowledges the deletion."""
        path = rng.choice(sorted(state))
        del state[path]

        async def delete(mount: SmbMount) -> None:
            await _opened(mount, path, mount.dispose)

        return state, delete

    def verify(self, client: Client) -> list[str]:
        """Return the differences from the expected state, for both protocols."""
        lost = FileWorker.verify(self, client)
        found = asyncio.run(self._read_over_smb())
        differing = [path for path, data in found.items() if data != self.known[path]]
        return lost + [f"{path} has other bytes over SMB than over REST" for path in differing]

    async def _read_over_smb(self) -> State:
        found: State = {}
        if self.known:
            async with SmbMount(self.smb_port, SHARE) as mount:
                for path in sorted(self.known)[::2]:
                    opened = await mount.open(_backslashes(path))
                    found[path] = await _whole(mount, opened.file_id, len(self.known[path]))
                    await mount.close(opened.file_id)
        return found


async def _nothing(file: FileId) -> None:
    """Do nothing, for an open that makes the change itself."""


async def _opened(
    mount: SmbMount,
    path: str,
    change: Callable[[FileId], Coroutine[Any, Any, Any]],
    disposition: int = Disposition.OPEN,
) -> None:
    """Change a file through a handle of its own."""
    opened = await mount.open(_backslashes(path), disposition)
    await change(opened.file_id)
    await mount.close(opened.file_id)


async def _whole(mount: SmbMount, file: FileId, size: int) -> bytes:
    pieces = []
    for at in range(0, size, _WRITE_BYTES_MAX):
        pieces.append(await mount.read(file, at, min(_WRITE_BYTES_MAX, size - at)))
    return b"".join(pieces)


def _backslashes(path: str) -> str:
    return path.replace("/", "\\")
