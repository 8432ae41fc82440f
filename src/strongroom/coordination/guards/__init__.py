"""Guards carry the fencing token of a hold to a resource and make it refuse an older one.

Lives here: `Guards`, what `held.guard` is; one module per kind of resource, imported when it is
asked for. A guard takes anything that has `name`, `fence` and `check()`. This is a handle, or a
`Token`: name and fence as they were sent to another process. Must not live here: handles.
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
        held: what they carry to the resources.
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
