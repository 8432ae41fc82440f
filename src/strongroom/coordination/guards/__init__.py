"""Guards carry the fencing token of a hold to a resource, which then refuses older tokens.

Lives here: `Guards`, the type of `held.guard`; one module per kind of resource, imported when it is
used. A guard takes any object with `name`, `fence` and `check()`. This is a handle, or a `Token`: a
name and a fence that came from another process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.coordination.guards.fencing import Fenced, FencedOut, Token

if TYPE_CHECKING:
    from strongroom.coordination.guards.blob import BlobGuard
    from strongroom.coordination.guards.etcd import EtcdGuard
    from strongroom.coordination.guards.redis import RedisGuard
    from strongroom.coordination.guards.sql import SqlConnection, SqlGuard

__all__ = ["Fenced", "FencedOut", "Guards", "Token"]


class Guards:
    """The guards of one hold.

    Arguments:
        held: the hold whose token they carry.
    """

    def __init__(self, held: Fenced) -> None:
        self._held = held

    def blob(self, url: str, *, timeout_s: float = 10.0) -> BlobGuard:
        """Return the guard of the blobs in a container; see `blob.BlobGuard`."""
        from strongroom.coordination.guards.blob import BlobGuard

        return BlobGuard(self._held, url, timeout_s=timeout_s)

    def etcd(self, url: str, *, timeout_s: float = 10.0) -> EtcdGuard:
        """Return the guard of the keys in an etcd; see `etcd.EtcdGuard`."""
        from strongroom.coordination.guards.etcd import EtcdGuard

        return EtcdGuard(self._held, url, timeout_s=timeout_s)

    def headers(self) -> dict[str, str]:
        """Return the header that carries the token with an HTTP request; see `http`.

        Raises:
            LockLost: the hold is known to be over: send nothing.
        """
        from strongroom.coordination.guards.http import HEADER, header_of

        self._held.check()
        return {HEADER: header_of(self._held)}

    def redis(self, url: str, *, timeout_s: float = 10.0) -> RedisGuard:
        """Return the guard of the keys in a Redis; see `redis.RedisGuard`."""
        from strongroom.coordination.guards.redis import RedisGuard

        return RedisGuard(self._held, url, timeout_s=timeout_s)

    def sql(
        self,
        connection: SqlConnection,
        *,
        resource: str | None = None,
        paramstyle: str | None = None,
    ) -> SqlGuard:
        """Return a guard for writes through a DB-API connection; see `sql.SqlGuard`."""
        from strongroom.coordination.guards.sql import SqlGuard

        return SqlGuard(self._held, connection, resource=resource, paramstyle=paramstyle)
