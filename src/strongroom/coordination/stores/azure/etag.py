"""Azure Blob Storage, Azurite or Strongroom as a store: one blob per key, its ETag is the version.

Lives here: ETag mode, and the meaning of the service's status codes. Every write is conditional, so
any TTL is possible and the service needs no leases. On Strongroom, a waiter sends
`x-strongroom-wait`, and the response is delayed until the blob changes. On other services waiters
poll. A leased blob is held in lease mode, and the service refuses every write that does not name
its lease. Such a blob counts as held until the lease ends. Source: Microsoft Learn, "Put Blob",
"Get Blob", "List Blobs", "Specifying conditional headers". Must not live here: leases
(azure/lease.py), sockets, the parsing of URLs (azure/store.py).
"""

from __future__ import annotations

import copy
import html
import math
import re
from collections.abc import Mapping
from typing import Final, Self
from urllib.parse import quote, unquote

from strongroom.coordination.clock import Clocks, SystemClocks
from strongroom.coordination.effects import (
    CONFLICT,
    UNCHANGED,
    Applied,
    CasOutcome,
    Entry,
    LeaseTerms,
    Unknown,
    Watched,
)
from strongroom.coordination.errors import StoreRefused, StoreUnavailable
from strongroom.coordination.store import AsyncStore, Promises
from strongroom.coordination.stores.azure.account import AzureAddress
from strongroom.coordination.stores.azure.http import AzureHttp, code_of, detail_of
from strongroom.coordination.stores.connections.http_pool import (
    HttpResponse,
    NoResponse,
    Transport,
)
from strongroom.coordination.stores.connections.pauses import Pauses
from strongroom.coordination.stores.threaded_store import StoreBase, ThreadedStore

NOTE: Final = "x-ms-meta-note"
HELD_STATES: Final = ("leased", "breaking")
"""The values of x-ms-lease-state for a leased blob."""
POLL_MIN_S: Final = 0.25
POLL_MAX_S: Final = 2.0
AGENT: Final = "strongroom-coordination/"
"""The beginning of the User-Agent of a waiting read; the label of the waiter follows."""
_LABEL_PLAIN: Final = "!#$&'*+-./:=?@^_`|~ "
_LABEL_MAX: Final = 200
_LISTED_MAX: Final = 5000  # keys in one answer of the service
_CREATE_TIMEOUT_S: Final = 10.0
_WAIT_MAX_S: Final = 60
_ANSWER_S: Final = 5.0
_EARLY_MAX: Final = 3
_ABSENT: Final = frozenset({"BlobNotFound", "ContainerNotFound"})
_CONFLICTS: Final = frozenset({409, 412})
_UNCERTAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
# Keys are ASCII without markup (names.py), so the XML need not be parsed to find them.
_BLOB: Final = re.compile(r"<Blob>.*?</Blob>", re.DOTALL)
_NAME: Final = re.compile(r"<Name>([^<&]*)</Name>")
_STATE: Final = re.compile(r"<(?:Etag|LeaseState)>([^<]*)<")
_NEXT: Final = re.compile(r"<NextMarker>([^<]*)</NextMarker>")


class AzureStore(StoreBase):
    """Blobs in one container, in ETag mode. The container is created when it is found missing.

    Arguments:
        address: account and container.
        long_polls: whether the service delays responses on request. If None, this is unknown: the
            store asks for a delay until it finds that the service ignores it.
        durable: whether an acknowledged write survives the service's process.
        clock: provides dates, and measures time limits.
        transport: carries the requests; by default, connections to the account's endpoint.
    """

    console_url = ""
    """Where people can look at the records in a browser; empty if the server does not say."""

    def __init__(
        self,
        address: AzureAddress,
        long_polls: bool | None = None,
        durable: bool = True,
        clock: Clocks | None = None,
        transport: Transport | None = None,
    ) -> None:
        self._address, self._durable = address, durable
        self._clock = clock or SystemClocks()
        self._container = address.container
        self._http = AzureHttp(address.account, self._clock, transport)
        self._long_polls, self._early_count = long_polls is not False, 0
        self._pauses = Pauses(self._clock, POLL_MIN_S, POLL_MAX_S)
        self._agent: Mapping[str, str] = {}  # a header of waiting reads that says who waits

    def labelled(self, label: str) -> Self:
        """The label is a part of the header of requests that wait anyway."""
        named = copy.copy(self)
        named._agent = {"user-agent": waiter_agent(label)}
        return named

    @property
    def endpoint(self) -> str:
        """With the account; it has no secret."""
        return self._address.account.endpoint

    # Reading

    def get(self, key: str, timeout_s: float) -> Entry | None:
        return self._entry(key, self._read(key, {}, timeout_s))

    def _read(
        self, key: str, headers: Mapping[str, str], timeout_s: float, long_polls: bool = False
    ) -> HttpResponse:
        path = self._path(key)
        try:
            return self._http.send("GET", path, {}, headers, timeout_s, long_polls=long_polls)
        except NoResponse as error:
            raise StoreUnavailable(str(error)) from error

    def _entry(self, key: str, response: HttpResponse) -> Entry | None:
        if response.status == 200:
            left_s = self._expires_in_s(response)
            return Entry(response.body, response.etag, left_s, response.header(NOTE))
        if response.status == 404 and code_of(response) in _ABSENT:
            return None
        raise _error_of(key, response)

    def _expires_in_s(self, response: HttpResponse) -> float | None:
        return math.inf if response.header("x-ms-lease-state") in HELD_STATES else None

    def watch(self, key: str, version: str | None, timeout_s: float) -> Watched:
        until_s = self._clock.monotonic_s() + timeout_s
        pause_s = 0.0
        while True:
            start_s = self._clock.monotonic_s()
            wait_s = min(int(until_s - start_s), _WAIT_MAX_S) if self._long_polls else 0
            outcome = self._read_once(key, version, wait_s)
            if outcome is not UNCHANGED:
                self._early_count = 0
                return outcome
            now_s = self._clock.monotonic_s()
            if now_s >= until_s:
                return UNCHANGED
            if wait_s >= 1 and now_s - start_s >= wait_s / 2:
                self._early_count = 0
                if until_s - now_s < 1:
                    return (
                        UNCHANGED  # the service waits for whole seconds, and less than one is left
                    )
                continue
            self._note_early_response(wait_s)
            pause_s = self._pauses.next_s(pause_s)
            self._pauses.sleep(min(until_s - now_s, pause_s))

    def _read_once(self, key: str, version: str | None, wait_s: int) -> Watched:
        response = self._waiting_read(key, version, wait_s, {})
        return self._entry_if_changed(key, version, response)

    def _waiting_read(
        self, key: str, version: str | None, wait_s: int, more: Mapping[str, str]
    ) -> HttpResponse:
        headers = {**more, "if-none-match": version} if version is not None else dict(more)
        if wait_s >= 1:
            headers |= {"x-strongroom-wait": str(wait_s), **self._agent}
        response = self._read(key, headers, wait_s + _ANSWER_S, long_polls=wait_s >= 1)
        if wait_s >= 1 and code_of(response) == "ContainerNotFound":
            self._create_container()  # the service cannot wait on a missing container
            response = self._read(key, headers, wait_s + _ANSWER_S, long_polls=True)
        return response

    def _entry_if_changed(self, key: str, version: str | None, response: HttpResponse) -> Watched:
        if response.status == 304:
            return UNCHANGED
        entry = self._entry(key, response)
        changed = (None if entry is None else entry.version) != version
        return entry if changed else UNCHANGED

    def _note_early_response(self, wait_s: int) -> None:
        # A server that is shutting down also responds early, but not over and over.
        self._early_count += wait_s >= 1
        if self._early_count >= _EARLY_MAX:
            self._long_polls = False

    def list_keys(self, prefix: str, timeout_s: float) -> list[str]:
        return sorted(self.list_states(prefix, timeout_s))

    def list_states(
        self, prefix: str, timeout_s: float, keys_max: int | None = None
    ) -> dict[str, str]:
        """`keys_max` ends the listing after about so many keys; None = list all."""
        until_s = self._clock.monotonic_s() + timeout_s
        states: dict[str, str] = {}
        query = {"restype": "container", "comp": "list", "prefix": prefix, "include": "metadata"}
        if keys_max is not None and keys_max < _LISTED_MAX:
            query["maxresults"] = str(keys_max)
        while True:
            left_s = until_s - self._clock.monotonic_s()
            try:
                response = self._http.send("GET", f"/{self._container}", query, {}, left_s)
            except NoResponse as error:
                raise StoreUnavailable(str(error)) from error
            if response.status == 404 and code_of(response) in _ABSENT:
                return {}
            if response.status != 200:
                raise _error_of(prefix, response)
            text = response.body.decode()
            for blob in _BLOB.findall(text):
                name = _NAME.search(blob)
                if name is not None and self._is_listed(blob):
                    states[name[1]] = " ".join(_STATE.findall(blob))
            marker = _NEXT.search(text)
            is_enough = keys_max is not None and len(states) >= keys_max
            if marker is None or not marker[1] or is_enough:
                return states
            query["marker"] = html.unescape(marker[1])

    def _is_listed(self, blob: str) -> bool:
        return True

    # Writing

    def cas(
        self,
        key: str,
        expected: str | None,
        value: bytes,
        timeout_s: float,
        lease: LeaseTerms | None = None,
        note: str = "",
    ) -> CasOutcome:
        headers = condition(expected)
        if note:
            headers[NOTE] = note
        return self._put(key, headers, value, timeout_s)

    def _put(
        self, key: str, headers: Mapping[str, str], value: bytes, timeout_s: float
    ) -> CasOutcome:
        kind = "application/json" if value[:1] == b"{" else "text/plain; charset=utf-8"
        sent = {"x-ms-blob-type": "BlockBlob", "content-type": kind, **headers}
        response = self._change("PUT", self._path(key), {}, sent, timeout_s, value)
        if isinstance(response, HttpResponse):
            return Applied(response.etag)
        return response

    def delete(self, key: str, expected: str, timeout_s: float) -> CasOutcome:
        response = self._change("DELETE", self._path(key), {}, {"if-match": expected}, timeout_s)
        return Applied(expected) if isinstance(response, HttpResponse) else response

    def _change(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        timeout_s: float,
        body: bytes = b"",
    ) -> HttpResponse | CasOutcome:
        """Send a write; return the response if it was applied, else the outcome."""
        try:
            response = self._http.send(method, path, query, headers, timeout_s, body)
            if response.status == 404 and code_of(response) == "ContainerNotFound":
                self._create_container()
                response = self._http.send(method, path, query, headers, timeout_s, body)
        except NoResponse as error:
            return Unknown(str(error))
        if response.status < 300:
            return response
        if code_of(response) == "ContainerBeingDeleted":
            raise _error_of(path, response)
        if response.status in _CONFLICTS or code_of(response) in _ABSENT:
            return CONFLICT
        if response.status in _UNCERTAIN:
            return Unknown(f"{response.status} {code_of(response)}")
        raise _error_of(path, response)

    def _create_container(self) -> None:
        query = {"restype": "container"}
        path = f"/{self._container}"
        try:
            response = self._http.send("PUT", path, query, {}, _CREATE_TIMEOUT_S)
        except NoResponse as error:
            raise StoreUnavailable(str(error)) from error
        exists = response.status == 409 and code_of(response) == "ContainerAlreadyExists"
        if response.status != 201 and not exists:
            raise _error_of(path, response)

    def _path(self, key: str) -> str:
        return f"/{self._container}/{key}"

    # Promises, asyncio, closing

    def promises(self) -> Promises:
        return Promises(
            store=f"Azure Blob Storage, ETag mode, container {self._container!r}",
            mutual_exclusion="clock-rate",
            assumption="the clocks of all participants run at about the same rate",
            fencing="durable",
            watch="long-poll" if self._long_polls else "poll",
            durable=self._durable,
            scope="network",
            ttl_min_s=1.0,
            poll_min_s=POLL_MIN_S,
            poll_max_s=POLL_MAX_S,
            notes=(
                "a hold that was taken in the other mode (etag, lease) is honoured until it ends:"
                " open the container in the same mode everywhere",
            ),
        )

    def aio(self) -> AsyncStore:
        long_polls = self._long_polls
        own = type(self)(self._address, long_polls, self._durable, self._clock)
        own._agent = self._agent
        return _AioAzure(own)

    def after_fork(self) -> None:
        self._http.pool.reset()

    def close(self) -> None:
        self._http.pool.close()


class _AioAzure(ThreadedStore):
    async def close(self) -> None:
        await super().close()
        self._store.close()  # interrupts the requests of its threads


def waiter_agent(label: str) -> str:
    """Return the User-Agent of a waiting read: who waits, as visible ASCII characters."""
    return f"{AGENT}{quote(label, safe=_LABEL_PLAIN)[:_LABEL_MAX]}"


def label_of_agent(agent: str) -> str | None:
    """Return who waits, from the User-Agent of a waiting read; None if it names no participant."""
    label = agent.removeprefix(AGENT)
    return unquote(label) if label and label != agent else None


def condition(expected: str | None) -> dict[str, str]:
    """Return the header that makes a write conditional on a version; None requires absence."""
    return {"if-none-match": "*"} if expected is None else {"if-match": expected}


def _error_of(where: str, response: HttpResponse) -> StoreRefused | StoreUnavailable:
    detail = detail_of(response)
    text = f"{where}: {response.status} {code_of(response)}".rstrip()
    text = f"{text}: {detail}" if detail else text
    if response.status in _UNCERTAIN or code_of(response) == "ContainerBeingDeleted":
        return StoreUnavailable(text)
    return StoreRefused(text)
