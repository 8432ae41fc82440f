"""The address and credentials of a Redis server: URLs, sessions, and the meaning of its errors.

Lives here: `RedisAddress`, `open_session`, `run_script`, `pool_of`. Source: Redis documentation,
"AUTH", "ROLE", "EVALSHA", "Redis protocol: errors". Must not live here: the wire protocol
(redis/wire.py), any script.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from strongroom.coordination.clock import Clocks
from strongroom.coordination.errors import StoreRefused, StoreUnavailable, Unsupported
from strongroom.coordination.options.url_options import (
    ANY,
    UrlOptions,
    check_host,
    check_options,
    port_of,
    query_of,
    unreadable_url,
)
from strongroom.coordination.stores.connections.idle_pool import IdlePool
from strongroom.coordination.stores.connections.tls_refusals import refusal_of
from strongroom.coordination.stores.redis.wire import RedisConnection, RedisError, Reply

_FILES: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_OPTIONS: Final = UrlOptions(
    dict.fromkeys(("prefix", *_FILES), ANY), may_be_empty=frozenset({"prefix"})
)
_TRANSIENT_ERRORS: Final[Mapping[str, str]] = {
    "LOADING": "it still loads its data",
    "BUSY": "a script of somebody else keeps it busy",
    "MASTERDOWN": "it is a replica without its primary",
    "READONLY": "it is a replica; name the primary, or wait until the failover is over",
    "NOREPLICAS": "too few replicas are there for its min-replicas-to-write",
    "MISCONF": "it cannot save to its disk and refuses to write",
    "OOM": "its memory is full",
    "TRYAGAIN": "keys are moving",
    "CLUSTERDOWN": "the cluster is down",
}
_PERMANENT_ERRORS: Final[Mapping[str, str]] = {
    "MOVED": "it is a node of a Redis Cluster, which is not followed; name a server alone",
    "ASK": "it is a node of a Redis Cluster, which is not followed; name a server alone",
    "CROSSSLOT": "it is a node of a Redis Cluster, which is not followed; name a server alone",
    "NOAUTH": "it wants a user or a password: redis://user:password@host",
    "WRONGPASS": "it refuses the user or the password",
    "NOPERM": "the user may not do that; it needs EVAL, EVALSHA, HGET, HMGET, HSET, DEL, TIME,"
    " SCAN, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, and all keys and channels below the prefix",
    "WRONGTYPE": "somebody else keeps something under a key of ours",
}
_WRONG_SERVER_CODES: Final = frozenset({"READONLY", "MASTERDOWN"})
"""Error codes of a connection that leads to the wrong server by now."""


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """The address of a Redis server, and the user that connects to it.

    Attributes:
        prefix: the text that every key begins with.
        tls: the TLS context; None for a plain connection.
        user, password: the credentials, empty if there are none. Not part of `repr`.
    """

    host: str
    port: int
    database: int
    prefix: str
    tls: ssl.SSLContext | None = field(repr=False)
    user: str = field(repr=False)
    password: str = field(repr=False)

    @property
    def display_url(self) -> str:
        """The server's URL without credentials, for messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'redis' if self.tls is None else 'rediss'}://{host}:{self.port}"


def address_of(url: str, query: Mapping[str, str] | None = None) -> RedisAddress:
    """Return the server that a URL names.

    Arguments:
        url: redis://user:password@host:6379/0, or rediss:// for TLS.
        query: the query of the URL, if it was parsed already. `prefix` begins every key; its
            default is "strongroom:". Files for TLS: `ssl_ca_certs` (authorities to trust; the
            system's by default), `ssl_certfile`, `ssl_keyfile`.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        # The text of this error may quote the URL, and with it the password.
        raise unreadable_url("redis") from None
    port = port_of(parts, 6379)
    query = query_of(url) if query is None else query
    check_options(url, query, _OPTIONS)
    database = parts.path.strip("/") or "0"
    if not parts.hostname or not (database.isascii() and database.isdigit()):
        raise Unsupported("write redis://user:password@host:6379/0, with the database's number")
    check_host(parts.hostname)
    return RedisAddress(
        host=parts.hostname,
        port=port,
        database=int(database),
        prefix=query.get("prefix", "strongroom:"),
        tls=_tls(parts.scheme == "rediss", query),
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )


def _tls(wanted: bool, query: Mapping[str, str]) -> ssl.SSLContext | None:
    files = [query.get(name) for name in _FILES]
    if not wanted:
        if any(files):
            raise Unsupported("ssl_... options belong to rediss://, which speaks TLS")
        return None
    trusted, certificate, key = files
    try:
        context = ssl.create_default_context(cafile=trusted)
        if certificate:
            context.load_cert_chain(certificate, key)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise Unsupported(f"a file that an ssl_... option names is of no use: {reason}") from None
    return context


def open_session(address: RedisAddress, clock: Clocks, until_s: float) -> RedisConnection:
    """Return an authenticated connection to the right database of a primary.

    Arguments:
        until_s: when to give up, by the monotonic clock.

    Raises:
        StoreUnavailable, StoreRefused: there is no session; no command of the caller was sent.
    """
    try:
        connection = RedisConnection(address.host, address.port, address.tls, clock, until_s)
    except OSError as error:
        raise _connection_error(address, error) from error
    try:
        _authenticate_and_select(connection, address, until_s)
    except RedisError as error:
        connection.close()
        raise store_error(address, error) from error
    except OSError as error:
        connection.close()
        raise _connection_error(address, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _authenticate_and_select(
    connection: RedisConnection, address: RedisAddress, until_s: float
) -> None:
    if address.user or address.password:
        user = (address.user,) if address.user else ()
        try:
            connection.call(until_s, "AUTH", *user, address.password)
        except RedisError as error:
            if error.code in _TRANSIENT_ERRORS:
                raise
            # The server's message is left out: some servers quote the password in it.
            raise StoreRefused(
                f"{address.display_url} refuses the user or the password ({error.code})"
            ) from None
    if address.database:
        connection.call(until_s, "SELECT", address.database)
    try:
        role = connection.call(until_s, "ROLE")
    except RedisError as error:
        if error.code in ("NOPERM", "ERR"):
            return  # the user may lack the permission; a write will show it
        raise
    if isinstance(role, list) and role and role[0] != b"master":
        # A replica's data may be stale.
        raise StoreUnavailable(f"{address.display_url}: {_TRANSIENT_ERRORS['READONLY']}")


def run_script(
    connection: RedisConnection,
    until_s: float,
    script: str,
    keys: Sequence[str],
    values: Sequence[str | bytes | int],
) -> Reply:
    """Run a script by its digest, and send its text only if the server does not know it.

    Returns: the script's reply.

    Raises: as `RedisConnection.call`.
    """
    try:
        return connection.call(until_s, "EVALSHA", _sha1(script), len(keys), *keys, *values)
    except RedisError as error:
        if error.code != "NOSCRIPT":
            raise
    return connection.call(until_s, "EVAL", script, len(keys), *keys, *values)


def _sha1(script: str) -> str:
    # The protocol names scripts by their SHA-1; it protects no secret.
    return hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()


def store_error(address: RedisAddress, error: RedisError) -> StoreRefused | StoreUnavailable:
    """Return the exception for an error reply: retry later, or never."""
    if error.code in _TRANSIENT_ERRORS:
        return StoreUnavailable(
            f"{address.display_url}: {_TRANSIENT_ERRORS[error.code]} ({error.code})"
        )
    if error.code in _PERMANENT_ERRORS:
        return StoreRefused(
            f"{address.display_url}: {_PERMANENT_ERRORS[error.code]} ({error.code})"
        )
    if "The user executing the script can't" in str(error):
        return StoreRefused(f"{address.display_url}: {_PERMANENT_ERRORS['NOPERM']}")
    # Older servers wrap the error that stopped a script in another error.
    transient_signs = ("max number of clients", *(f"-{code} " for code in _TRANSIENT_ERRORS))
    if any(sign in str(error) for sign in transient_signs):
        return StoreUnavailable(f"{address.display_url}: {error}")
    return StoreRefused(f"{address.display_url}: {error}")


def _connection_error(address: RedisAddress, error: OSError) -> StoreRefused | StoreUnavailable:
    if refusal := refusal_of(error):
        return StoreRefused(f"{address.display_url}: {refusal}")
    return StoreUnavailable(f"{address.display_url}: {str(error) or type(error).__name__}")


def pool_of(address: RedisAddress, clock: Clocks) -> IdlePool[RedisConnection]:
    """Return a pool of connections to a server."""
    return IdlePool(lambda until_s: open_session(address, clock, until_s), _is_answer, clock)


def _is_answer(error: BaseException) -> bool:
    return isinstance(error, RedisError) and error.code not in _WRONG_SERVER_CODES
