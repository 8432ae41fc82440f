"""One share that REST and SMB serve, for tests with real clients of both.

Lives here: the requests of REST that the tables of share modes and breaks are about, each on the
file `f`. Must not live here: SMB's side (tests/servers/smb/sockets.py), the tables.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from tests.conformance.answer import Answer, expect
from tests.conformance.client import Client
from tests.conformance.running import Running
from tests.servers.smb.sockets import SmbMount

PATIENCE_S: Final = 120.0
LEASE_ID: Final = "aaaaaaaa-0000-0000-0000-000000000000"
FILE: Final = {"x-ms-type": "file", "x-ms-content-length": "4"}
UPDATE: Final = {"x-ms-write": "update", "x-ms-range": "bytes=0-3"}
ACQUIRE: Final = {
    "x-ms-lease-action": "acquire",
    "x-ms-lease-duration": "-1",
    "x-ms-proposed-lease-id": LEASE_ID,
}
Send = Callable[[Client, str], Answer]
"""Sends a request to a share, given by its path, and returns the answer."""

# The names come from smb.md 4.2 and 4.5.
SENDS: Final[dict[str, Send]] = {
    "Create": lambda rest, share: rest.put(f"{share}/f", FILE),
    "Get": lambda rest, share: rest.get(f"{share}/f"),
    "SetProps": lambda rest, share: rest.put(f"{share}/f?comp=properties"),
    "SetMeta": lambda rest, share: rest.put(f"{share}/f?comp=metadata", {"x-ms-meta-a": "b"}),
    "Delete": lambda rest, share: rest.delete(f"{share}/f"),
    "PutRange": lambda rest, share: rest.put(f"{share}/f?comp=range", UPDATE, b"next"),
    "ListRanges": lambda rest, share: rest.get(f"{share}/f?comp=rangelist"),
    "Lease": lambda rest, share: rest.put(f"{share}/f?comp=lease", ACQUIRE),
    "GetProps": lambda rest, share: rest.head(f"{share}/f"),
    "GetMeta": lambda rest, share: rest.get(f"{share}/f?comp=metadata"),
    "ListFiles": lambda rest, share: rest.get(f"{share}?restype=directory&comp=list"),
    "Rename": lambda rest, share: rest.put(
        f"{share}/g?comp=rename", {"x-ms-file-rename-source": f"{rest.url}{share}/f"}
    ),
}


class BothProtocols:
    """A server, and clients of both protocols.

    Attributes:
        rest: a client of REST, for one request at a time.
    """

    def __init__(self, running: Running) -> None:
        self.running = running
        self.rest = running.files()
        self._made = 0

    def new_share(self) -> str:
        """Create a share with the file `f`, and return its path."""
        self._made += 1
        share = f"/both-{self._made}"
        expect(self.rest.put(f"{share}?restype=share"), 201)
        expect(self.rest.put(f"{share}/f", FILE), 201)
        expect(self.rest.put(f"{share}/f?comp=range", UPDATE, b"text"), 201)
        return share

    def mount(self, share: str, **more: Any) -> SmbMount:
        """Return an SMB client; see SmbMount."""
        return SmbMount(self.running.smb_port, share.removeprefix("/"), **more)

    async def send(self, operation: str, share: str) -> Answer:
        """Send a REST request in a thread."""
        return await asyncio.to_thread(SENDS[operation], self.rest, share)

    def close(self) -> None:
        """End the client and the server."""
        self.rest.close()
        self.running.stop()


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test in an event loop, for a limited time."""
    asyncio.run(asyncio.wait_for(work, PATIENCE_S))


def is_refused(answer: Answer, refusal: tuple[int, str]) -> bool:
    """Whether the answer is this refusal; any other refusal fails the test."""
    if answer.status < 300:
        return False
    assert (answer.status, answer.code) == refusal, answer
    return True
