"""Where copies read from: this server's blobs, or other HTTP(S) servers behind an interface.

Lives here: what an open source is, the interfaces that find and open one, and what a source's URL
may be. Must not live here: reading of blobs (copy_reading.py), sockets (servers/). Source: "Copy
Blob", "Copy Blob From URL", request header x-ms-copy-source.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import SplitResult, urlsplit

from strongroom import blob_errors, limits
from strongroom.errors import ErrorCode, StorageError, invalid_header
from strongroom.semantics.core.conditions import Conditions
from strongroom.services.core.calls import Call
from strongroom.store.blob.bodies.body import CopyWriter
from strongroom.values import ContentProperties, Metadata

HEADER: Final = "x-ms-copy-source"
# How many sources may be held open between the answer of a copy and its turn in the background.
HANDED_OVER_MAX: Final = 64
# What the parameters of a URL may say to whoever may read the copy; the others are credentials.
_REPORTED: Final = ("snapshot", "versionid")


@dataclass(frozen=True, slots=True)
class LocalSource:
    """A blob of this server that the caller may read; `snapshot` in ticks.

    `may_read_tags`: whether the caller may read its tags too.
    """

    account: str
    container: str
    generation: int
    blob: str
    snapshot: int | None = None
    may_read_tags: bool = True


class SourceBroken(Exception):
    """A source that ended early or failed while it was read; the text says how."""


@dataclass(slots=True, eq=False)
class OpenSource:
    """A source as it was when it was opened, whatever becomes of it meanwhile.

    Iterating gives its bytes, once, and raises SourceBroken. `size_bytes` None = not known
    beforehand. `copy_writer`: see OpenBody. `tier` is None when it has the account's, or is on
    another server; tags of a source on another server are asked for separately.
    """

    size_bytes: int | None
    chunks: AsyncIterator[bytes]
    release: Callable[[], None]
    properties: ContentProperties
    metadata: Metadata = ()
    etag: str | None = None
    copy_writer: CopyWriter | None = None
    tier: str | None = None
    tags: Metadata = ()
    is_remote: bool = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self.chunks)

    async def close(self) -> None:
        """Give the source up, read or not. Idempotent."""
        closing = getattr(self.chunks, "aclose", None)
        try:
            if closing is not None:
                await closing()
        finally:
            self.release()


class RemoteReader(Protocol):
    """Opens sources on other servers."""

    async def open(self, url: str, conditions: Conditions) -> OpenSource:
        """Ask for the source and return when its head has arrived.

        Raises: StorageError CannotVerifyCopySource (403 for a server that may not be asked),
            SourceConditionNotMet.
        """
        ...


Locate = Callable[[str, Call[Any]], Awaitable[LocalSource | None]]
"""locate(url, call) -> the blob of this server that the URL names, or None when it names another
server. It authorizes: by the SAS in the URL, by public access, or because the caller signed with
the key of the same account. Raises: StorageError CannotVerifyCopySource."""


class CopyHold(Protocol):
    """Keeps copies pending, for tests; `destination` is `account/container/blob`."""

    def is_held(self, destination: str) -> bool:
        """Whether a copy to this blob must stay pending."""
        ...

    async def released(self, destination: str) -> None:
        """Return when a copy to this blob may go on."""
        ...


class CopySources:
    """What the program was composed with, and the sources that pending copies have open.

    Without `locate` no URL names a blob of this server; without `remote` no other server is asked;
    without `hold` every copy goes on at once.
    """

    def __init__(self) -> None:
        self.locate: Locate | None = None
        self.remote: RemoteReader | None = None
        self.hold: CopyHold | None = None
        self._open: dict[str, OpenSource] = {}

    async def open_remote(self, url: str, conditions: Conditions) -> OpenSource:
        """Open a source elsewhere. Raises: as RemoteReader.open."""
        if self.remote is None:
            text = "This server does not copy from other servers."
            raise cannot_read(blob_errors.COPY_SOURCE_FORBIDDEN, text)
        source = await self.remote.open(url, conditions)
        source.is_remote = True
        return source

    def is_held(self, container: str, blob: str) -> bool:
        """Whether a copy to this blob (`account/container`, name) must stay pending."""
        return self.hold is not None and self.hold.is_held(f"{container}/{blob}")

    async def released(self, container: str, blob: str) -> None:
        """Return when a copy to this blob (`account/container`, name) may go on."""
        if self.hold is not None:
            await self.hold.released(f"{container}/{blob}")

    async def hand_over(self, copy_id: str, source: OpenSource) -> None:
        """Leave an open source to the pending copy that goes on with it."""
        if len(self._open) < HANDED_OVER_MAX:
            self._open[copy_id] = source
        else:
            # The copy opens it again when its turn comes.
            await source.close()

    def is_open(self, copy_id: str) -> bool:
        """Whether a source was left for a copy."""
        return copy_id in self._open

    def take(self, copy_id: str) -> OpenSource | None:
        """The source that was left for a copy, if there is one."""
        return self._open.pop(copy_id, None)

    async def close(self) -> None:
        """Give up every source that is still waiting for its copy."""
        while self._open:
            await self._open.popitem()[1].close()


def cannot_read(
    row: ErrorCode, message: str | None = None, status: int | None = None, code: str = ""
) -> StorageError:
    """CannotVerifyCopySource, with the status and the code that the source itself answered."""
    headers: list[tuple[str, str]] = []
    if status is not None:
        headers.append(("x-ms-copy-source-status-code", str(status)))
    if code:
        headers.append(("x-ms-copy-source-error-code", code))
    return StorageError(row, message, (), tuple(headers))


def source_missing(code: ErrorCode) -> StorageError:
    """The source, or its container, is not there."""
    return cannot_read(blob_errors.CANNOT_VERIFY_COPY_SOURCE, code.message, code.status, code.code)


def check_url(text: str) -> SplitResult:
    """The parts of x-ms-copy-source.

    Raises: StorageError InvalidHeaderValue unless it is an absolute http(s) URL of at most 2 KiB,
        percent-encoded, without user and password.
    """
    if len(text) > limits.COPY_SOURCE_CHARS_MAX or not _is_clean(text):
        raise invalid_header(HEADER, reported_url(text))
    try:
        url = urlsplit(text)
        usable = url.scheme in ("http", "https") and url.hostname and url.port != 0
    except ValueError:
        raise invalid_header(HEADER, reported_url(text)) from None
    if not usable or url.username is not None or url.password is not None:
        raise invalid_header(HEADER, reported_url(text))
    return url


def _is_clean(text: str) -> bool:
    return all("!" <= char <= "~" for char in text)


def reported_url(text: str) -> str:
    """The URL as a copy shows it to those who read the blob: without what authorizes."""
    path, _, query = text.partition("#")[0].partition("?")
    shown = [part for part in query.split("&") if part.partition("=")[0].lower() in _REPORTED]
    return path + ("?" + "&".join(shown) if shown else "")
