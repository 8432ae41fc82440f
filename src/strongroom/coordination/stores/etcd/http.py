"""etcd's JSON gateway: requests to whichever member answers, as whoever one is.

Lives here: base64, the turn of the members, the token of a user, and what an error means for a
write. Source: etcd's documentation, "gRPC gateway" (paths and JSON names) and "Role-based access
control"; the status codes of gRPC. Must not live here: what is asked (etcd/store.py), watches
(etcd/watch.py).
"""

from __future__ import annotations

import json
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from strongroom.coordination.clock import Clocks
from strongroom.coordination.errors import StoreRefused, StoreUnavailable
from strongroom.coordination.stores.connections.http_pool import HttpPool, NoAnswer
from strongroom.coordination.stores.etcd.address import EtcdAddress

T = TypeVar("T")
Json = dict[str, Any]
_INVALID, _FORBIDDEN, _NO_METHOD, _WHO = 3, 7, 12, 16
_REFUSALS: Final = frozenset({_INVALID, _FORBIDDEN, _NO_METHOD})
_REFUSED: Final = frozenset({"etcdserver: authentication is not enabled", "Not Found"})
_NO_LEASE: Final = "etcdserver: requested lease not found"
# A member that knows of no leader says so at once instead of letting everybody wait.
_HEADERS: Final = {"Content-Type": "application/json", "Grpc-Metadata-hasleader": "true"}
_NO_LEADER: Final = "etcdserver: no leader"
# The user's rights may have changed since the token was given: nothing was done, ask anew.
_OLD_RIGHTS: Final = "etcdserver: revision of auth store is old"
_NOBODY: Final = "etcdserver: user name is empty"


class Failed(Exception):
    """A member answered with an error that does not tell whether the request took effect."""


class Missing(Exception):
    """The lease that was asked for does not exist: nothing took effect."""


class BadToken(Exception):
    """The token is none, or none any more: nothing took effect."""


def encoded(data: str | bytes) -> str:
    """Return bytes as the gateway wants them."""
    return b64encode(data.encode() if isinstance(data, str) else data).decode()


def decoded(row: Mapping[str, Any], field: str) -> bytes:
    """Return the bytes of a field as the gateway wrote them; empty fields are left out by it."""
    return b64decode(str(row.get(field, "")))


class EtcdHttp:
    """The members of one cluster. Any thread may use it.

    Arguments:
        address: members, user, password; the member that answered last is asked first.
        clock: for time limits.
    """

    def __init__(self, address: EtcdAddress, clock: Clocks) -> None:
        self.address, self.clock = address, clock
        self._pools = [HttpPool(member, clock, address.tls) for member in address.members]
        self._first = 0
        self._token = ""
        self._asking = threading.Lock()

    def write(self, path: str, body: Mapping[str, object], timeout_s: float) -> Json:
        """Send once; another member is asked only if the first certainly never saw it.

        Raises:
            NoAnswer, Failed: it may have taken effect.
            Missing: it has not: the lease does not exist.
            StoreUnavailable, StoreRefused: it has not.
        """
        return self._send(path, body, timeout_s, again=False)

    def read(self, path: str, body: Mapping[str, object], timeout_s: float) -> Json:
        """Ask one member after the other within the time.

        Raises:
            StoreUnavailable, StoreRefused: nobody answered, or it will not get better.
        """
        try:
            return self._send(path, body, timeout_s, again=True)
        except (NoAnswer, Failed, Missing) as error:
            raise StoreUnavailable(str(error)) from error

    def _send(self, path: str, body: Mapping[str, object], timeout_s: float, again: bool) -> Json:
        raw = json.dumps(body).encode()
        until_s = self.clock.monotonic_s() + timeout_s

        def ask(index: int, left_s: float) -> Json:
            return self._ask(self._pools[index], path, raw, left_s)

        return self.in_turn(ask, until_s, again)

    def in_turn(self, ask: Callable[[int, float], T], until_s: float, again: bool) -> T:
        """Try members, beginning with the one that was good last, until one is.

        Arguments:
            ask: is given the member's number and the seconds that it may take.
            until_s: when to give up, by the monotonic clock.
            again: whether one that may have done something may be followed by another.

        Raises: what `ask` raised last, StoreUnavailable if there was no time.
        """
        first, count = self._first, len(self._pools)
        failure: Exception = StoreUnavailable("no member of the cluster was asked in time")
        for step in range(count):
            index = (first + step) % count
            left_s = until_s - self.clock.monotonic_s()
            if left_s <= 0:
                break
            try:
                found = ask(index, left_s / (count - step) if again else left_s)
            except (StoreUnavailable, NoAnswer, Failed) as error:
                # Who is silent, away or without a leader is not to be asked first the next time.
                self._first = (index + 1) % count
                failure = error
                if not again and not isinstance(error, StoreUnavailable):
                    raise
            else:
                self._first = index
                return found
        raise failure

    def _ask(self, pool: HttpPool, path: str, raw: bytes, timeout_s: float) -> Json:
        until_s = self.clock.monotonic_s() + timeout_s
        headers = self.headers(pool, timeout_s)
        try:
            return self._exchange(pool, path, raw, headers, until_s)
        except BadToken:
            # It was refused before anything was done, so that it may be sent again.
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
        answer = pool.send("POST", path, headers, raw, left_s)
        return _document(pool.host_field, answer.status, answer.body)

    def headers(self, member: HttpPool | int, timeout_s: float) -> dict[str, str]:
        """Return the headers of a request, with a token if there is a user.

        Arguments:
            member: whom to ask for a token if there is none.
            timeout_s: how long to ask.

        Raises:
            StoreUnavailable, StoreRefused: there is no token to be had.
        """
        if not self.address.user:
            return _HEADERS
        pool = self._pools[member] if isinstance(member, int) else member
        token = self._token or self._new_token(pool, timeout_s)
        return {**_HEADERS, "Authorization": token}

    def _new_token(self, pool: HttpPool, timeout_s: float) -> str:
        # Checking a password is made to be slow: one thread asks, and the others wait for it.
        until_s = self.clock.monotonic_s() + timeout_s
        if not self._asking.acquire(timeout=max(0.0, timeout_s)):
            raise StoreUnavailable(f"{pool.host_field} gave no token in time")
        try:
            if not self._token:
                self._token = self._authenticate(pool, until_s - self.clock.monotonic_s())
            return self._token
        finally:
            self._asking.release()

    def renew_token(self, headers: Mapping[str, str]) -> None:
        """Forget the token that was refused.

        Raises:
            StoreRefused: there was none: the URL names no user.
        """
        if not self.address.user:
            raise StoreRefused("this etcd wants a user: etcd://USER:PASSWORD@HOST")
        if self._token == headers.get("Authorization"):
            self._token = ""

    def _authenticate(self, pool: HttpPool, timeout_s: float) -> str:
        who = {"name": self.address.user, "password": self.address.password}
        path, raw = "/v3/auth/authenticate", json.dumps(who).encode()
        until_s = self.clock.monotonic_s() + timeout_s
        try:
            token = str(self._exchange(pool, path, raw, _HEADERS, until_s)["token"])
        except StoreRefused as error:
            raise StoreRefused(f"{pool.host_field} refuses user and password: {error}") from None
        except (NoAnswer, Failed, Missing, BadToken, KeyError) as error:
            raise StoreUnavailable(f"{pool.host_field} gave no token: {error}") from None
        if not (token.isascii() and token.isprintable()):
            raise StoreRefused(f"{pool.host_field} gave a token that no header can hold")
        return token

    def forget(self) -> None:
        """Start without connections, in a forked child."""
        self._asking = threading.Lock()
        for pool in self._pools:
            pool.forget()

    def close(self) -> None:
        """Close what is idle."""
        for pool in self._pools:
            pool.close()


def _document(where: str, status: int, raw: bytes) -> Json:
    try:
        found = json.loads(raw)
    except ValueError as error:
        if status in (404, 405):
            raise StoreRefused(f"{where} has no JSON gateway of etcd 3.4 or later") from error
        raise Failed(f"{where}: status {status} and no JSON") from error
    if not isinstance(found, dict):
        raise Failed(f"{where}: status {status} and no object")
    if status == 200 and "code" not in found:
        return found
    raise failure_of(where, found, status)


def failure_of(where: str, details: Mapping[str, Any], status: int = 0) -> Exception:
    """Return what an error that etcd sent means.

    Arguments:
        where: who sent it.
        details: the error as it came.
        status: of HTTP, if there is nothing better to tell.
    """
    words = str(details.get("message") or details.get("error") or f"status {status}")
    code = details.get("code", details.get("grpc_code"))
    if code == _WHO or words in (_OLD_RIGHTS, _NOBODY):
        return BadToken(words)
    if words == _NO_LEADER:
        return StoreUnavailable(f"{where}: {words}")
    if code in _REFUSALS or words in _REFUSED:
        return StoreRefused(f"{where}: {words}")
    return (Missing if words == _NO_LEASE else Failed)(f"{where}: {words}")
