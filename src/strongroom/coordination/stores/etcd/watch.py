"""Watches of etcd: waiting until a key changes, or until the time is up.

Lives here: the watches of one client, each a stream over its own connection. A watch begins at the
present revision, since etcd serves past revisions only ten times a second. Of an event, only the
revision is used: a newer one means "read the key now". A finished watch is reused by the next
waiter that knows the same version, so a repeated wait costs no request. Source: etcd's
documentation, "etcd API" (watches). Must not live here: reading keys (etcd/store.py).
"""

from __future__ import annotations

import json
import threading
from typing import Final
from urllib.parse import urlsplit

from strongroom.coordination.errors import StoreRefused, StoreUnavailable
from strongroom.coordination.stores.connections.http_connection import BadResponse
from strongroom.coordination.stores.connections.tls_refusals import refusal_of
from strongroom.coordination.stores.etcd.http import BadToken, EtcdHttp, Json, encoded, failure_of
from strongroom.coordination.stores.etcd.stream import LineStream

_FIRST_ANSWER_S: Final = 2.0
# A silently cut connection or a hanging member sends nothing, so a watch is renewed this often.
_AGE_MAX_S: Final = 30.0
_IDLE_MAX_S: Final = 2.0
_IDLE_MAX: Final = 64
# Older members report an unknown token as a missing permission.
_REFUSAL_WORDS: Final = ("Unauthenticated", "permission denied", "user name is empty")

KnownVersion = tuple[bytes, str | None]
"""A key, and the version that its waiter knows (None: absent)."""


class EtcdWatches:
    """The watches of one client. Thread-safe."""

    def __init__(self, http: EtcdHttp) -> None:
        self._http = http
        self.reset()

    def reset(self) -> None:
        """In a forked child, the inherited watches belong to the parent."""
        self._lock = threading.Lock()
        self._in_use: set[EtcdWatch] = set()
        self._idle: list[tuple[float, KnownVersion, EtcdWatch]] = []

    def reuse(self, known: KnownVersion) -> EtcdWatch | None:
        """Return an idle watch that began before `known` was read; None if there is none.

        It reports every change since that read.
        """
        now_s = self._http.clock.monotonic_s()
        self.sweep()
        with self._lock:
            for item in self._idle:
                _, item_known, watch = item
                if item_known == known and now_s - watch.began_s < _AGE_MAX_S:
                    self._idle.remove(item)
                    self._in_use.add(watch)
                    return watch
        return None

    def open(self, key: bytes, end: bytes, until_s: float) -> EtcdWatch:
        """Return a watch of the keys from `key` up to but excluding `end`, confirmed by a member.

        Arguments:
            key, end: the range of keys.
            until_s: when to give up trying members, by the monotonic clock.

        Raises:
            StoreUnavailable: no member confirmed it.
            StoreRefused: a member refused, and a retry will not help.
        """

        def opened(index: int, left_s: float) -> EtcdWatch:
            headers = self._http.headers(index, left_s)
            limit_s = min(left_s, _FIRST_ANSWER_S)
            try:
                return EtcdWatch(self._http, index, headers, key, end, limit_s)
            except BadToken:
                self._http.renew_token(headers)
            headers = self._http.headers(index, left_s)
            try:
                return EtcdWatch(self._http, index, headers, key, end, limit_s)
            except BadToken as error:
                raise StoreRefused(f"a watch was refused: {error}") from error

        watch = self._http.try_members(opened, until_s, may_retry=True)
        with self._lock:
            self._in_use.add(watch)
        return watch

    def give_back(self, watch: EtcdWatch, known: KnownVersion | None) -> None:
        """Take back a watch, and keep it for reuse or close it.

        Arguments:
            watch: the watch whose waiter has finished.
            known: the key and version that the waiter read after the watch began; None: close it.
        """
        now_s = self._http.clock.monotonic_s()
        with self._lock:
            self._in_use.discard(watch)
            if known is not None and len(self._idle) < _IDLE_MAX:
                self._idle.append((now_s, known, watch))
                return
        watch.close()

    def sweep(self) -> None:
        """Close the watches that have been idle for too long."""
        if not self._idle:
            return
        end_s = self._http.clock.monotonic_s() - _IDLE_MAX_S
        with self._lock:
            over = [watch for since_s, _, watch in self._idle if since_s < end_s]
            self._idle = [item for item in self._idle if item[0] >= end_s]
        for watch in over:
            watch.close()

    def close(self) -> None:
        """Close the idle watches, and interrupt the waiting ones."""
        with self._lock:
            idle, self._idle = self._idle, []
            used = list(self._in_use)
        for _, _, watch in idle:
            watch.close()
        for watch in used:
            watch.interrupt()


class EtcdWatch:
    """One confirmed watch, for one thread at a time; see `EtcdWatches`."""

    def __init__(
        self,
        http: EtcdHttp,
        index: int,
        headers: dict[str, str],
        key: bytes,
        end: bytes,
        limit_s: float,
    ) -> None:
        parts = urlsplit(http.address.members[index])
        self._host, self.began_s = parts.netloc, http.clock.monotonic_s()
        until_s = self.began_s + limit_s
        request = {"create_request": {"key": encoded(key), "range_end": encoded(end)}}
        try:
            self._stream = LineStream(
                parts.hostname or "", parts.port or 0, http.address.tls, http.clock, until_s
            )
        except OSError as error:
            raise _connection_error(self._host, error) from error
        try:
            body = json.dumps(request).encode()
            self._stream.begin(parts.netloc, "/v3/watch", headers, body, until_s)
            if self._next(until_s) is None:
                raise StoreUnavailable(f"{self._host} did not confirm a watch in time")
        except (OSError, BadResponse) as error:
            self._stream.close()
            raise _connection_error(self._host, error) from error
        except BaseException:
            self._stream.close()
            raise

    def changed(self, after_revision: int, until_s: float) -> bool:
        """Wait for a change; return False if the time is up first.

        Arguments:
            after_revision: changes up to this revision are ignored.
            until_s: when to give up, by the monotonic clock.

        Raises:
            StoreUnavailable: the stream broke, so changes may have been missed.
        """
        try:
            while True:
                result = self._next(until_s)
                if result is None:
                    return False
                events = result.get("events", [])
                if any(_revision(event) > after_revision for event in events):
                    return True
        except BadToken as error:
            raise StoreUnavailable(f"{self._host}: {error}") from error
        except (OSError, BadResponse) as error:
            raise _connection_error(self._host, error) from error

    def _next(self, until_s: float) -> Json | None:
        """None if the time is up."""
        line = self._stream.line(until_s)
        if line is None:
            return None
        try:
            message = json.loads(line)
            result = message.get("result")
        except (ValueError, AttributeError) as error:
            raise StoreUnavailable(f"{self._host} ended the watch") from error
        if not isinstance(result, dict):
            details = message.get("error", message)
            raise failure_of(self._host, details if isinstance(details, dict) else {})
        if result.get("canceled"):
            reason = str(result.get("cancel_reason", "")) or "it was canceled"
            if any(word in reason for word in _REFUSAL_WORDS):
                raise BadToken(reason)
            raise StoreUnavailable(f"{self._host} ended the watch: {reason}")
        return result

    def interrupt(self) -> None:
        """Called from another thread."""
        self._stream.interrupt()

    def close(self) -> None:
        self._stream.close()


def _revision(event: Json) -> int:
    try:
        return int(event["kv"]["mod_revision"])
    except (KeyError, ValueError, TypeError) as error:
        raise BadResponse("an event without its revision") from error


def _connection_error(where: str, error: Exception) -> StoreUnavailable | StoreRefused:
    if refusal := refusal_of(error):
        return StoreRefused(f"{where}: {refusal}")
    return StoreUnavailable(f"{where}: {str(error) or type(error).__name__}")
