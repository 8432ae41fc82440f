"""The token issuer's keys: from a file, or from a URL that is fetched rarely and within limits.

Lives here: when a key set is read again, and how long it stays valid. Must not live here: its
format (auth/key_set.py), connections (copies/client.py). Source: RFC 7517; OpenID Connect Core 1.0,
section 10.1.1 (a verifier reads the published keys again when it meets an unknown `kid`).

It fails closed: without a key set that was read within a day, every token is refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol

from strongroom.auth.key_set import DOCUMENT_BYTES_MAX, KeySet, KeySetError, parse_key_set
from strongroom.errors.core import StorageError
from strongroom.servers.copies.client import CopyClient
from strongroom.servers.identities import private_file
from strongroom.servers.identities.private_file import WatchedFile
from strongroom.services.core.copies.sources import WHOLE, SourceBroken

FRESH_S: Final = 3600.0
"""A key set that is older is read again beside the requests that use it."""
VALID_S: Final = 24 * 3600.0
"""A key set that is older is not used, since its issuer may have withdrawn a stolen key."""
FETCH_INTERVAL_MIN_S: Final = 60.0
"""How long after the start of a fetch the next one may start, whether or not it succeeded."""
FETCH_TIMEOUT_S: Final = 15.0
_log = logging.getLogger(__name__)


class TokenKeys(Protocol):
    """The source of the issuer's keys."""

    def current(self) -> KeySet | None:
        """Return the key set that is valid now; None if there is none."""
        ...

    async def ready(self, kid: str | None) -> None:
        """Wait until the key `kid` is cached, or a fetch has ended or may not be made yet."""
        ...


class KeyFile:
    """The keys of a file. An invalid file changes nothing; a deleted file has no keys.

    Raises: OSError, KeySetError: the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._file: WatchedFile[KeySet | None] = WatchedFile(path, _read_key_set, None)
        if not self._file.exists:
            raise FileNotFoundError(f"there is no key file {path}")

    def current(self) -> KeySet | None:
        return self._file.get()

    async def ready(self, kid: str | None) -> None:
        """Nothing is fetched."""


def _read_key_set(path: Path) -> KeySet:
    return private_file.read(path, DOCUMENT_BYTES_MAX, parse_key_set, KeySetError)


class KeyUrl:
    """The keys of a URL.

    Arguments:
        fetch: returns the document. It raises OSError, KeySetError, SourceBroken or StorageError.
        time_s: seconds of a monotonic clock.
    """

    def __init__(self, fetch: Callable[[], Awaitable[bytes]], time_s: Callable[[], float]) -> None:
        self._fetch = fetch
        self._time_s = time_s
        self._keys: KeySet | None = None
        self._read_at = 0.0
        self._fetch_started_at: float | None = None
        self._fetching: asyncio.Task[None] | None = None

    def current(self) -> KeySet | None:
        is_valid = self._time_s() - self._read_at < VALID_S
        return self._keys if is_valid else None

    async def ready(self, kid: str | None) -> None:
        """Concurrent requests share one fetch."""
        keys = self.current()
        is_known = keys is not None and keys.find(kid) is not None
        if is_known and self._time_s() - self._read_at < FRESH_S:
            return
        fetching = self._start_fetch()
        if fetching is not None and not is_known:
            # The fetch goes on when this request is cancelled: other requests wait for it too.
            await asyncio.shield(fetching)

    async def close(self) -> None:
        """Cancel a fetch that is in progress."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)

    def _start_fetch(self) -> asyncio.Task[None] | None:
        if self._fetching is not None and not self._fetching.done():
            return self._fetching
        if (
            self._fetch_started_at is not None
            and self._time_s() - self._fetch_started_at < FETCH_INTERVAL_MIN_S
        ):
            return None
        self._fetch_started_at = self._time_s()
        self._fetching = asyncio.create_task(self._read())
        return self._fetching

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S):
                keys = parse_key_set(await self._fetch())
        except StorageError as error:
            _log.error("the issuer's keys cannot be read: %s", error.message)
        except (OSError, KeySetError, SourceBroken) as error:
            reason = str(error) or "it takes too long"
            _log.error("the issuer's keys cannot be read: %s", reason)
        else:
            self._keys, self._read_at = keys, self._time_s()


async def fetch(client: CopyClient, url: str) -> bytes:
    """Return a document of at most DOCUMENT_BYTES_MAX bytes. Redirects are not followed.

    Raises: StorageError, SourceBroken; KeySetError if the document is longer.
    """
    source = await client.open(url, WHOLE)
    try:
        document = bytearray()
        async for chunk in source:
            document += chunk
            if len(document) > DOCUMENT_BYTES_MAX:
                raise KeySetError(f"the key set is longer than {DOCUMENT_BYTES_MAX} bytes")
        return bytes(document)
    finally:
        await source.close()
