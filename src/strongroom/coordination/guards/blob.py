"""Blobs that refuse writes with an old fence: Azure Blob Storage as the resource.

    guard = BlobGuard(held, "azure://account/reports")
    guard.claim("daily.csv")
    guard.write("daily.csv", data)

A blob keeps in its metadata the highest fence that has written it, and the name of the lock. Every
write has as condition the ETag that was read together with the fence, so no other write comes
between. A later holder has changed the ETag, and then its fence is read. An older holder may write
until the newer one has written once; `claim` does that at the beginning, without touching the
content. With `lease_s` it also leases the blob under an id that is derived from the lock and the
fence. The service then refuses even writers that use no guard. Source: Microsoft Learn, "Specifying
conditional headers for Blob service operations", "Lease Blob".
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Final, NamedTuple, Self

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.errors import CorruptRecord, StoreRefused, StoreUnavailable
from strongroom.coordination.guards.fencing import Fenced, FencedOut
from strongroom.coordination.options.environment import variable
from strongroom.coordination.options.url_options import query_of
from strongroom.coordination.schema.names import escape
from strongroom.coordination.stores.azure.account import CONNECTION_STRING, address_of
from strongroom.coordination.stores.azure.etag import condition
from strongroom.coordination.stores.azure.http import AzureHttp, code_of
from strongroom.coordination.stores.azure.lease import lease_id
from strongroom.coordination.stores.connections.http_pool import HttpResponse, NoResponse

_METADATA_PREFIX: Final = "x-ms-meta-"
_FENCE: Final = f"{_METADATA_PREFIX}fence"
_LOCK: Final = f"{_METADATA_PREFIX}fencelock"
_WRITE: Final = f"{_METADATA_PREFIX}fencewrite"
_GUARD_METADATA: Final = frozenset({_FENCE, _LOCK, _WRITE})
_ATTEMPTS_MAX: Final = 20
_UNCERTAIN: Final = frozenset({408, 429, 500, 502, 503, 504})


class Guarded(NamedTuple):
    """A blob as it was read.

    Attributes:
        value: the content.
        etag: its version.
        fence: the highest fence that has written it; 0 if no guard ever did.
    """

    value: bytes
    etag: str
    fence: int


class _State(NamedTuple):
    etag: str | None
    fence: int
    write: str
    metadata: dict[str, str]


class BlobGuard:
    """The guard of one container's blobs, for one hold. Any thread may use it.

    Arguments:
        held: a handle, or a `Token`.
        url: azure://ACCOUNT/CONTAINER?..., as for `connect`; the container must exist.
        timeout_s: for one request.
        clock: for tests.

    Raises:
        Unsupported: the URL names no container, or there is no key.
    """

    def __init__(
        self,
        held: Fenced,
        url: str,
        *,
        timeout_s: float = 10.0,
        clock: Clocks | None = None,
    ) -> None:
        self._held, self._timeout_s = held, timeout_s
        self._clock = clock or SystemClocks()
        address = address_of(url, query_of(url), variable(CONNECTION_STRING))
        self._container = address.container
        self._http = AzureHttp(address.account, self._clock)
        self._lock = escape(held.name)
        self._leased: set[str] = set()

    def read(self, name: str) -> Guarded | None:
        """Return a blob; None if there is none. The hold is not checked.

        Raises:
            StoreUnavailable, StoreRefused: the service did not answer, or refused.
        """
        response = self._send("GET", name, {})
        if response.status == 404 and code_of(response) == "BlobNotFound":
            return None
        if response.status != 200:
            raise _error_of(name, response)
        return Guarded(response.body, response.etag, self._state(name, response).fence)

    def claim(self, name: str, lease_s: int | None = None) -> None:
        """Make the blob refuse every earlier holder from now on. Create it empty if it is absent.

        Arguments:
            name: of the blob.
            lease_s: also lease the blob for 15 to 60 s. Another `claim` prolongs the lease.

        Raises:
            LockLost: the hold is known to be over.
            FencedOut: a later holder has claimed the blob.
            StoreUnavailable: it is not known whether the blob was claimed.
            StoreRefused: the service refuses, the blob belongs to another lock, or another client
                has leased it.
        """
        self._write(name, None, {})
        if lease_s is not None:
            self._lease(name, lease_s)

    def write(
        self,
        name: str,
        value: bytes,
        content_type: str = "application/octet-stream",
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        """Replace the content of a blob, or create it; return its ETag.

        Arguments:
            name: of the blob.
            value: its content.
            content_type: its media type.
            metadata: its metadata, without the prefix; none by default.

        Raises: as `claim`.
        """
        headers = {f"{_METADATA_PREFIX}{key}": text for key, text in (metadata or {}).items()}
        return self._write(name, value, {**headers, "content-type": content_type})

    def give_back(self, name: str) -> None:
        """Release the lease that `claim` took. No effect if there is none."""
        self._leased.discard(name)
        terms = {"x-ms-lease-action": "release", "x-ms-lease-id": self._lease_id(name)}
        response = self._send("PUT", name, terms, {"comp": "lease"})
        if response.status not in (200, 404, 409):
            raise _error_of(name, response)

    def close(self) -> None:
        self._http.pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, name: str, value: bytes | None, headers: Mapping[str, str]) -> str:
        write = self._clock.nonce()
        for _ in range(_ATTEMPTS_MAX):
            self._held.check()
            state = self._read_state(name)
            if state.write == write and state.etag is not None:
                return state.etag  # the write was applied, and its answer was lost
            self._check_fence(name, state)
            response = self._write_once(name, value, headers, state, write)
            if response is None or response.status in _UNCERTAIN:
                # A write that is still on its way has the same ETag as condition. It cannot be
                # applied after another write.
                continue
            if response.status in (200, 201):
                return response.etag
            if response.status == 412 and code_of(response).startswith("Lease"):
                self._check_fence(name, self._read_state(name))
                if name in self._leased:
                    raise FencedOut(self._held.name, self._held.fence, None, name)
                raise StoreRefused(f"{name}: somebody else's lease is on it ({code_of(response)})")
            if response.status not in (409, 412):
                raise _error_of(name, response)
        raise StoreUnavailable(f"{name}: it is not known whether it was written")

    def _write_once(
        self,
        name: str,
        value: bytes | None,
        headers: Mapping[str, str],
        state: _State,
        write: str,
    ) -> HttpResponse | None:
        token = {_FENCE: str(self._held.fence), _LOCK: self._lock, _WRITE: write}
        sent = {**headers, **token, **condition(state.etag)}
        if name in self._leased:
            sent["x-ms-lease-id"] = self._lease_id(name)
        query = {}
        if value is None and state.etag is not None:
            query["comp"] = "metadata"
            sent = {**state.metadata, **sent}
        else:
            sent["x-ms-blob-type"] = "BlockBlob"
        try:
            return self._exchange("PUT", name, sent, query, value or b"")
        except NoResponse:
            return None

    def _check_fence(self, name: str, state: _State) -> None:
        if state.fence > self._held.fence:
            raise FencedOut(self._held.name, self._held.fence, state.fence, name)

    def _read_state(self, name: str) -> _State:
        response = self._send("HEAD", name, {})
        if response.status == 404 and code_of(response) in ("BlobNotFound", ""):
            return _State(None, 0, "", {})
        if response.status != 200:
            raise _error_of(name, response)
        return self._state(name, response)

    def _state(self, name: str, response: HttpResponse) -> _State:
        fence, lock = response.header(_FENCE), response.header(_LOCK)
        if fence and not (fence.isascii() and fence.isdigit()):
            raise CorruptRecord(name, fence.encode(), "a fence in its metadata")
        if lock and lock != self._lock:
            raise StoreRefused(f"{name} belongs to the lock {lock}, not to {self._lock}")
        metadata = {
            field.lower(): text
            for field, text in response.headers.items()
            if field.lower().startswith(_METADATA_PREFIX) and field.lower() not in _GUARD_METADATA
        }
        return _State(response.etag, int(fence or 0), response.header(_WRITE), metadata)

    def _lease(self, name: str, lease_s: int) -> None:
        terms = {
            "x-ms-lease-action": "acquire",
            "x-ms-lease-duration": str(lease_s),
            "x-ms-proposed-lease-id": self._lease_id(name),
        }
        response = self._send("PUT", name, terms, {"comp": "lease"})
        if response.status == 409:
            self._check_fence(name, self._read_state(name))
        if response.status not in (200, 201):
            raise _error_of(name, response)
        self._leased.add(name)

    def _lease_id(self, name: str) -> str:
        return lease_id(f"{self._lock}#{self._held.fence}#{name}")

    def _send(
        self,
        method: str,
        name: str,
        headers: Mapping[str, str],
        query: Mapping[str, str] | None = None,
    ) -> HttpResponse:
        """Send a request that may be repeated."""
        try:
            return self._exchange(method, name, headers, query or {}, b"")
        except NoResponse as error:
            raise StoreUnavailable(str(error)) from error

    def _exchange(
        self,
        method: str,
        name: str,
        headers: Mapping[str, str],
        query: Mapping[str, str],
        body: bytes,
    ) -> HttpResponse:
        path = f"/{self._container}/{name}"
        return self._http.send(method, path, query, headers, self._timeout_s, body)


def _error_of(where: str, response: HttpResponse) -> StoreRefused | StoreUnavailable:
    text = f"{where}: {response.status} {code_of(response)}".rstrip()
    if response.status in _UNCERTAIN:
        return StoreUnavailable(text)
    return StoreRefused(text)
