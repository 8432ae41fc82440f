"""Requests to etcd's JSON gateway, sent to the members of a cluster in turn.

Lives here: base64, the order of the members, the token of a user, and what an error means for a
write. Source: etcd's documentation, "gRPC gateway" (paths and JSON names) and "Role-based access
control"; the status codes of gRPC. Must not live here: the requests of the store (etcd/store.py),
watches (etcd/watch.py).
"""

from __future__ import annotations

import json
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from strongroom.coordination.clock import Clocks
from strongroom.coordination.errors import StoreRefused, StoreUnavailable
from strongroom.coordination.stores.connections.http_pool import HttpPool, NoResponse
from strongroom.coordination.stores.etcd.address import EtcdAddress

T = TypeVar("T")
Json = dict[str, Any]
_INVALID_ARGUMENT, _PERMISSION_DENIED, _UNIMPLEMENTED, _UNAUTHENTICATED = 3, 7, 12, 16
_REFUSAL_CODES: Final = frozenset({_INVALID_ARGUMENT, _PERMISSION_DENIED, _UNIMPLEMENTED})
_REFUSAL_MESSAGES: Final = frozenset({"etcdserver: authentication is not enabled", "Not Found"})
_LEASE_NOT_FOUND: Final = "etcdserver: requested lease not found"
# With this header, a member without a leader fails at once instead of after a timeout.
_HEADERS: Final = {"Content-Type": "application/json", "Grpc-Metadata-hasleader": "true"}
_NO_LEADER: Final = "etcdserver: no leader"
# The user's rights changed after the token was issued: nothing was applied, so retry.
_AUTH_REVISION_OLD: Final = "etcdserver: revision of auth store is old"
_USER_NAME_EMPTY: Final = "etcdserver: user name is empty"


class MemberError(Exception):
    """A member returned an error that does not tell whether the request took effect."""


class LeaseNotFound(Exception):
    """The lease in the request does not exist: nothing took effect."""


class BadToken(Exception):
    """The token is invalid or has expired: nothing took effect."""


def encoded(data: str | bytes) -> str:
    """Return the base64 text that the gateway expects for bytes."""
    return b64encode(data.encode() if isinstance(data, str) else data).decode()


def decoded(row: Mapping[str, Any], field: str) -> bytes:
    """Return the bytes of a base64 field; the gateway leaves out empty fields."""
    return b64decode(str(row.get(field, "")))


class EtcdHttp:
    """The members of one cluster. Thread-safe.

    Arguments:
        address: members, user, password. The member that responded last is tried first.
    """

    def __init__(self, address: EtcdAddress, clock: Clocks) -> None:
        self.address, self.clock = address, clock
        self._pools = [HttpPool(member, clock, address.tls) for member in address.members]
        self._preferred = 0
        self._token = ""
        self._token_lock = threading.Lock()

    def write(self, path: str, body: Mapping[str, object], timeout_s: float) -> Json:
        """Send a write once. Another member is tried only if the first certainly never received it.

        Raises:
            NoResponse, Failed: the write may have taken effect.
            LeaseNotFound: it was not applied, because the lease does not exist.
            StoreUnavailable, StoreRefused: it was not applied.
        """
        return self._send(path, body, timeout_s, may_retry=False)

    def read(self, path: str, body: Mapping[str, object], timeout_s: float) -> Json:
        """Send a read to one member after another, until one responds or the time is up.

        Raises:
            StoreUnavailable: no member responded.
            StoreRefused: a member refused, and a retry will not help.
        """
        try:
            return self._send(path, body, timeout_s, may_retry=True)
        except (NoResponse, MemberError, LeaseNotFound) as error:
            raise StoreUnavailable(str(error)) from error

    def _send(
        self, path: str, body: Mapping[str, object], timeout_s: float, may_retry: bool
    ) -> Json:
        raw = json.dumps(body).encode()
        until_s = self.clock.monotonic_s() + timeout_s

        def request(index: int, left_s: float) -> Json:
            return self._request(self._pools[index], path, raw, left_s)

        return self.try_members(request, until_s, may_retry)

    def try_members(self, request: Callable[[int, float], T], until_s: float, may_retry: bool) -> T:
        """Call `request` for each member until it succeeds, starting with the last good member.

        Arguments:
            request: called with the member's index and the seconds that it may take.
            until_s: when to give up, by the monotonic clock.
            may_retry: whether to continue after a failure that may have taken effect.

        Returns: the result of the first `request` that succeeds.

        Raises: the last error of `request`; StoreUnavailable if the time was up before any call.
        """
        first, count = self._preferred, len(self._pools)
        failure: Exception = StoreUnavailable("no member of the cluster was asked in time")
        for step in range(count):
            index = (first + step) % count
            left_s = until_s - self.clock.monotonic_s()
            if left_s <= 0:
                break
            try:
                found = request(index, left_s / (count - step) if may_retry else left_s)
            except (StoreUnavailable, NoResponse, MemberError) as error:
                # A member that is silent, unreachable or without a leader is not tried first next
                # time.
                self._preferred = (index + 1) % count
                failure = error
                if not may_retry and not isinstance(error, StoreUnavailable):
                    raise
            else:
                self._preferred = index
                return found
        raise failure

    def _request(self, pool: HttpPool, path: str, raw: bytes, timeout_s: float) -> Json:
        until_s = self.clock.monotonic_s() + timeout_s
        headers = self.headers(pool, timeout_s)
        try:
            return self._exchange(pool, path, raw, headers, until_s)
        except BadToken:
            # The token was refused before anything was applied, so the request may be repeated.
            self.renew_token(headers)
        headers = self.headers(pool, until_s - self.clock.monotonic_s())
        try:
            return self._exchange(pool, path, raw, headers, until_s)
        except BadToken as error:
            raise StoreUnavailable(f"{pool.host_field} forgets its tokens: {error}") from error

    def _exchange(
        self, pool: HttpPool, path: str, raw: bytes, headers: Mapping[str, str], until_s: float
    ) -> Json:
        left_s = until_s - self.clock.monotonic_s()
        if left_s <= 0:
            raise StoreUnavailable(f"{pool.host_field} was not asked: the time is up")
        response = pool.send("POST", path, headers, raw, left_s)
        return _document(pool.host_field, response.status, response.body)

    def headers(self, member: HttpPool | int, timeout_s: float) -> dict[str, str]:
        """Return the headers of a request, with a token if the URL names a user.

        Arguments:
            member: the member that issues a token if none is cached.
            timeout_s: how long the token may take.

        Raises:
            StoreUnavailable, StoreRefused: no token could be obtained.
        """
        if not self.address.user:
            return _HEADERS
        pool = self._pools[member] if isinstance(member, int) else member
        token = self._token or self._new_token(pool, timeout_s)
        return {**_HEADERS, "Authorization": token}

    def _new_token(self, pool: HttpPool, timeout_s: float) -> str:
        # Password checks are slow by design: one thread authenticates, the others wait for it.
        until_s = self.clock.monotonic_s() + timeout_s
        if not self._token_lock.acquire(timeout=max(0.0, timeout_s)):
            raise StoreUnavailable(f"{pool.host_field} gave no token in time")
        try:
            if not self._token:
                self._token = self._authenticate(pool, until_s - self.clock.monotonic_s())
            return self._token
        finally:
            self._token_lock.release()

    def renew_token(self, headers: Mapping[str, str]) -> None:
        """Drop the cached token if it is the one that was refused.

        Raises:
            StoreRefused: the request had no token, because the URL names no user.
        """
        if not self.address.user:
            raise StoreRefused("this etcd wants a user: etcd://USER:PASSWORD@HOST")
        if self._token == headers.get("Authorization"):
            self._token = ""

    def _authenticate(self, pool: HttpPool, timeout_s: float) -> str:
        credentials = {"name": self.address.user, "password": self.address.password}
        path, raw = "/v3/auth/authenticate", json.dumps(credentials).encode()
        until_s = self.clock.monotonic_s() + timeout_s
        try:
            token = str(self._exchange(pool, path, raw, _HEADERS, until_s)["token"])
        except StoreRefused as error:
            raise StoreRefused(f"{pool.host_field} refuses user and password: {error}") from None
        except (NoResponse, MemberError, LeaseNotFound, BadToken, KeyError) as error:
            raise StoreUnavailable(f"{pool.host_field} gave no token: {error}") from None
        if not (token.isascii() and token.isprintable()):
            raise StoreRefused(f"{pool.host_field} gave a token that no header can hold")
        return token

    def reset(self) -> None:
        """In a forked child, the inherited connections belong to the parent."""
        self._token_lock = threading.Lock()
        for pool in self._pools:
            pool.reset()

    def close(self) -> None:
        for pool in self._pools:
            pool.close()


def _document(where: str, status: int, raw: bytes) -> Json:
    try:
        found = json.loads(raw)
    except ValueError as error:
        if status in (404, 405):
            raise StoreRefused(f"{where} has no JSON gateway of etcd 3.4 or later") from error
        raise MemberError(f"{where}: status {status} and no JSON") from error
    if not isinstance(found, dict):
        raise MemberError(f"{where}: status {status} and no object")
    if status == 200 and "code" not in found:
        return found
    raise failure_of(where, found, status)


def failure_of(where: str, details: Mapping[str, Any], status: int = 0) -> Exception:
    """Return the exception for an error that etcd sent.

    Arguments:
        where: the member that sent it.
        details: the error's JSON object.
        status: the HTTP status, used if the object has no message.
    """
    message = str(details.get("message") or details.get("error") or f"status {status}")
    code = details.get("code", details.get("grpc_code"))
    if code == _UNAUTHENTICATED or message in (_AUTH_REVISION_OLD, _USER_NAME_EMPTY):
        return BadToken(message)
    if message == _NO_LEADER:
        return StoreUnavailable(f"{where}: {message}")
    if code in _REFUSAL_CODES or message in _REFUSAL_MESSAGES:
        return StoreRefused(f"{where}: {message}")
    return (LeaseNotFound if message == _LEASE_NOT_FOUND else MemberError)(f"{where}: {message}")
