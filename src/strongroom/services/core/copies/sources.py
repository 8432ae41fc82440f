"""The sources of copies: blobs and files of this server, or other HTTP(S) servers.

Lives here: open sources, the interfaces that find and open one, and the rules of a source's URL.
Source: "Copy Blob", "Copy Blob From URL", "Copy File", request header x-ms-copy-source.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import SplitResult, urlsplit

import msgspec

from strongroom import limits
from strongroom.auth.request import Service
from strongroom.engines.base import EngineError
from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors.core import ErrorCode, StorageError, invalid_header
from strongroom.semantics.core import conditions as conditional
from strongroom.semantics.core.conditions import Conditions
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.store.core.keys import Past
from strongroom.store.core.records import DamagedRecord
from strongroom.values import ByteRange, ContentProperties, Metadata

HEADER: Final = "x-ms-copy-source"
# How many sources may stay open between the answer to a copy request and the start of its job.
KEPT_SOURCES_MAX: Final = 64
# Parameters of a source URL that readers of the copy may see; the others are credentials.
_REPORTED: Final = ("snapshot", "versionid", "sharesnapshot")


class LocalSource(msgspec.Struct, frozen=True):
    """A blob or file of this server that the caller may read.

    `container` is a file's share, and `blob` its path. `snapshot` or `version` are in ticks.
    `trailing_dots`: dots at the end of a file's names are significant.
    """

    account: str
    container: str
    generation: int
    blob: str
    snapshot: int | None = None
    version: int | None = None
    service: Service = Service.BLOB
    trailing_dots: bool = False

    @property
    def past(self) -> Past | None:
        """The version may be the current one."""
        if self.version is not None:
            return Past(self.version, True)
        return None if self.snapshot is None else Past(self.snapshot)


class SourceRequest(msgspec.Struct, frozen=True):
    """The requirements of a request on its source.

    Attributes:
        conditions: must hold for the source.
        range: the requested bytes; None = all.
        authorization: the Authorization header for the source: `Bearer TOKEN`.
        is_read: the conditions are those of a read (From URL), not of a copy.
        with_tags: the source's tags are needed too.
        trailing_dots: dots at the end of a file's names are significant.
        by_caller: the caller's own key or bearer token authorizes to read a source of its account.
    """

    conditions: Conditions = conditional.NONE
    range: ByteRange | None = None
    authorization: str | None = None
    is_read: bool = False
    with_tags: bool = False
    trailing_dots: bool = False
    by_caller: bool = False

    def condition_error(self, is_unmodified: bool) -> StorageError:
        """`is_unmodified`: a read of the source with this condition is answered 304, not 412."""
        if not self.is_read:
            return StorageError(copy_errors.SOURCE_CONDITION_NOT_MET)
        if is_unmodified:
            return conditional.source_unmet(copy_errors.COPY_SOURCE_NOT_MODIFIED)
        return conditional.source_unmet(copy_errors.COPY_SOURCE_CONDITION_NOT_MET)


WHOLE: Final = SourceRequest()


class SourceBroken(Exception):
    """A source ended early or failed while it was read; the text says how."""


@dataclass(slots=True, eq=False)
class OpenSource:
    """A source as it was when it was opened; later changes of it have no effect.

    Iterating yields the requested bytes once, and raises SourceBroken. `size_bytes` is their
    number, None = unknown.
    """

    size_bytes: int | None
    chunks: AsyncIterator[bytes]
    release: Callable[[], None]
    properties: ContentProperties
    metadata: Metadata = ()
    etag: str | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self.chunks)

    async def close(self) -> None:
        """Release the source, whether it was read or not. Idempotent."""
        closing = getattr(self.chunks, "aclose", None)
        try:
            if closing is not None:
                await closing()
        finally:
            self.release()


class RemoteReader(Protocol):
    """Opens sources on other servers."""

    async def open(self, url: str, wanted: SourceRequest) -> OpenSource:
        """Request the source and return when the head of the response has arrived.

        Raises: StorageError CannotVerifyCopySource (403 for a server that may not be contacted),
            InvalidRange, and the errors of unmet conditions in `wanted`.
        """
        ...


Locate = Callable[[str, Call[Any], SourceRequest], Awaitable[LocalSource | None]]
"""locate(url, call, wanted) -> the blob or file of this server that the URL names, or None when it
names another server. It authorizes by the source's own Authorization, the SAS in the URL or public
access. If `wanted.by_caller`, a key or token of the source's account is enough.
Raises: StorageError CannotVerifyCopySource."""


OpenLocal = Callable[[Services, LocalSource, SourceRequest], Awaitable[OpenSource]]
"""open(services, source, wanted) -> the open source, which is on this server. Raises: StorageError
CannotVerifyCopySource, and the errors of unmet conditions in `wanted`."""


class Opener(NamedTuple):
    """The function with which a service opens its own sources."""

    service: Service
    open: OpenLocal


class CopyHold(Protocol):
    """Keeps copies pending, for tests; `destination` is `account/container/blob`."""

    def is_held(self, destination: str) -> bool: ...

    async def wait_until_released(self, destination: str) -> None: ...


IsPending = Callable[[], Awaitable[bool]]
"""is_pending() -> whether a copy is still pending, as read from its destination."""


_NO_OPENERS: Final[Mapping[Service, OpenLocal]] = MappingProxyType({})


class CopySources:
    """The openers that the program was composed with, and the open sources of pending copies.

    Arguments:
        openers: open the sources of other services.
        locate: finds a URL's source on this server; None = no URL names one.
        remote: opens sources on other servers; None = no other server is contacted.
        hold: keeps copies pending; None = none is kept.
    """

    def __init__(
        self,
        openers: Mapping[Service, OpenLocal] = _NO_OPENERS,
        *,
        locate: Locate | None = None,
        remote: RemoteReader | None = None,
        hold: CopyHold | None = None,
    ) -> None:
        self.openers = openers
        self.locate = locate
        self.remote = remote
        self.hold = hold
        self._open: dict[str, OpenSource] = {}
        self._pending: dict[str, IsPending] = {}

    async def open_remote(self, url: str, wanted: SourceRequest) -> OpenSource:
        """Without its tags."""
        if self.remote is None:
            text = "This server does not copy from other servers."
            raise cannot_read(copy_errors.COPY_SOURCE_FORBIDDEN, text)
        return await self.remote.open(url, wanted)

    def is_held(self, container: str, blob: str) -> bool:
        """Return whether a copy to this blob (`account/container`, name) must stay pending."""
        return self.hold is not None and self.hold.is_held(f"{container}/{blob}")

    async def wait_until_released(self, container: str, blob: str) -> None:
        """Wait until a copy to this blob (`account/container`, name) may proceed."""
        if self.hold is not None:
            await self.hold.wait_until_released(f"{container}/{blob}")

    async def keep_open(self, copy_id: str, source: OpenSource) -> None:
        if len(self._open) < KEPT_SOURCES_MAX:
            self._open[copy_id] = source
        else:
            # The job of the copy opens the source again when it starts.
            await source.close()

    def register_committed(self, copy_id: str, is_pending: IsPending) -> None:
        """Register a committed copy, so that `close_ended` can close its source.

        Another gateway may run the job of the copy, so this one must notice that the copy is no
        longer pending.
        """
        if copy_id in self._open:
            self._pending[copy_id] = is_pending

    async def close_ended(self) -> None:
        """Close the kept sources of copies that are no longer pending. Call it from time to time.

        The source of a copy whose destination cannot be read now is kept.
        """
        for copy_id, is_pending in list(self._pending.items()):
            try:
                if await is_pending():
                    continue
            except (EngineError, DamagedRecord):
                continue
            left = self.take(copy_id)
            if left is not None:
                await left.close()

    def is_open(self, copy_id: str) -> bool:
        return copy_id in self._open

    def take(self, copy_id: str) -> OpenSource | None:
        self._pending.pop(copy_id, None)
        return self._open.pop(copy_id, None)

    async def close(self) -> None:
        self._pending.clear()
        while self._open:
            await self._open.popitem()[1].close()


def cannot_read(
    row: ErrorCode, message: str | None = None, status: int | None = None, code: str = ""
) -> StorageError:
    """Return CannotVerifyCopySource with the status and the code that the source answered."""
    headers: list[tuple[str, str]] = []
    if status is not None:
        headers.append(("x-ms-copy-source-status-code", str(status)))
    if code:
        headers.append(("x-ms-copy-source-error-code", code))
    return StorageError(row, message, (), tuple(headers))


def not_allowed(status: int) -> ErrorCode:
    """Return the error for a source that refused to be read, by its status: 401, 403, or 404 as in
    old versions."""
    for row in (copy_errors.COPY_SOURCE_UNAUTHENTICATED, copy_errors.CANNOT_VERIFY_COPY_SOURCE):
        if row.status == status:
            return row
    return copy_errors.COPY_SOURCE_FORBIDDEN


def range_beyond_end() -> StorageError:
    """Return the error for a source that is shorter than the requested range."""
    row = errors.INVALID_RANGE
    return cannot_read(row, None, row.status, row.code)


def require_part(wanted: ByteRange, size_bytes: int) -> tuple[int, int]:
    """Return (offset, length) of a range, which the source must contain wholly.

    A read would shorten a range that ends beyond the end. A block that is shorter than requested
    would corrupt the blob that is made of it.
    """
    part = wanted.within(size_bytes)
    if part is None or (wanted.last is not None and wanted.last >= size_bytes):
        raise range_beyond_end()
    return part


def source_missing(code: ErrorCode) -> StorageError:
    """Return the error for a source that does not exist, or whose container does not."""
    return cannot_read(copy_errors.CANNOT_VERIFY_COPY_SOURCE, code.message, code.status, code.code)


def check_url(text: str) -> SplitResult:
    """It must be an absolute http(s) URL of at most 2 KiB, percent-encoded, without user and
    password."""
    if len(text) > limits.COPY_SOURCE_CHARS_MAX or not _is_clean(text):
        raise invalid_header(HEADER, url_without_credentials(text))
    try:
        url = urlsplit(text)
        usable = url.scheme in ("http", "https") and url.hostname and url.port != 0
    except ValueError:
        raise invalid_header(HEADER, url_without_credentials(text)) from None
    if not usable or url.username is not None or url.password is not None:
        raise invalid_header(HEADER, url_without_credentials(text))
    return url


def _is_clean(text: str) -> bool:
    return all("!" <= char <= "~" for char in text)


def url_without_credentials(text: str) -> str:
    """Return the source URL without credentials, as readers of the copy see it."""
    path, _, query = text.partition("#")[0].partition("?")
    shown = [part for part in query.split("&") if part.partition("=")[0].lower() in _REPORTED]
    return path + ("?" + "&".join(shown) if shown else "")
