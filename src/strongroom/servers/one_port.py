"""One port for all services: finds the service that a request is for.

    host style   http://ACCOUNT.queue.localhost:PORT/queue     the host names the service
    path style   http://127.0.0.1:PORT/queue/ACCOUNT/queue     the first segment names it
    mixed        http://ACCOUNT.example.net:PORT/queue/queue   the host names the account only

If the host names a service, the path has no segment for it. Otherwise the first segment always is
the service's name, so an account may have that name too. Must not live here: the meaning of the
rest of the path (wire/core/path.py). Source: our own rule; Azure has a host name for each service.
The segment is signed with the rest of the path: clients sign the path as they send it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from strongroom.auth.request import Service
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.wire.core.http import Request
from strongroom.wire.core.path import account_of_host

NAME: Final = "all"
"""The name of this listener among all listeners."""
_MESSAGE: Final = (
    "This port serves all services: begin the path with /blob/ACCOUNT/, /queue/ACCOUNT/, "
    "/table/ACCOUNT/ or /file/ACCOUNT/, or use a host name like ACCOUNT.blob.localhost."
)


class Route(NamedTuple):
    """The service of a URL, and the part of its path that names it ("" if the host names it).

    `mount` begins with a slash and ends without one.
    """

    service: Service
    mount: str


class OnePort:
    """Routes requests by host and path.

    A host suffix whose first label is a service's name is for that service.
    """

    def __init__(self, services: Iterable[Service], suffixes: Iterable[str]) -> None:
        self._by_mount = {service.value: service for service in services}
        self._suffixes: Mapping[Service, tuple[str, ...]] = {
            service: _naming(service, suffixes) for service in self._by_mount.values()
        }

    def route(self, host: str, path: str) -> Route:
        """`host` is the Host header, with or without port. `path` is as it was sent, without the
        query.

        Raises: StorageError InvalidUri if neither the host nor the path names a service.
        """
        for service, suffixes in self._suffixes.items():
            if account_of_host(host, suffixes) is not None:
                return Route(service, "")
        first = path[1:].partition("/")[0]
        named = self._by_mount.get(first)
        if named is None:
            raise StorageError(errors.INVALID_URI, _MESSAGE)
        return Route(named, f"/{first}")

    def route_request(self, request: Request) -> Service:
        """Also sets the request's `mount`."""
        service, request.mount = self.route(request.host, request.path)
        return service


def is_for(suffix: str, service: Service) -> bool:
    """Whether a host suffix names exactly this service: `queue.example.org` is for queues."""
    return suffix.partition(".")[0] == service.value


def _naming(service: Service, suffixes: Iterable[str]) -> tuple[str, ...]:
    own = tuple(suffix for suffix in suffixes if is_for(suffix, service))
    return (f"{service.value}.localhost", *own)
