"""Which copy sources are blobs of this server, and whether the caller may read them.

Lives here: the recognition of this server in a URL, and the same authentication and authorization
that a GET of that URL would meet. Must not live here: reading the source (services/blob/copies/).
Source: "Copy Blob", remarks on authorization of the source; reference section 8.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from strongroom import blob_errors, errors
from strongroom.auth.authenticate import authenticate
from strongroom.auth.authorize import Permission, authorize
from strongroom.auth.claims import Anonymous, Claim, SharedKeyClaim
from strongroom.auth.request import Service
from strongroom.errors import StorageError
from strongroom.operations.core import permissions
from strongroom.operations.core.spec import Resource
from strongroom.semantics.blob import snapshots
from strongroom.semantics.core import names
from strongroom.servers import admission, one_port
from strongroom.servers.admission import Asked, Context
from strongroom.servers.one_port import OnePort
from strongroom.services.core.calls import Call
from strongroom.services.core.copies.sources import (
    WHOLE,
    LocalSource,
    SourceRequest,
    cannot_read,
    source_missing,
)
from strongroom.wire.core import path
from strongroom.wire.core.http import Headers, Request

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class _NoBody:
    size_bytes: int | None = 0
    is_held_back = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks: tuple[bytes, ...] = ()
        for chunk in chunks:
            yield chunk

    async def read_all(self, max_bytes: int) -> bytes:
        return b""


class CopyLocator:
    """Finds sources on this server.

    Arguments:
        context: of the Blob service.
        ports: the ports that this server listens on, by the listener's name; they come to stand
            there while it starts.
        router: reads the URLs of the port of all services.
    """

    def __init__(self, context: Context, ports: Mapping[str, int], router: OnePort) -> None:
        self._context = context
        self._ports = ports
        self._router = router

    async def locate(
        self, url: str, call: Call[Any], wanted: SourceRequest = WHOLE
    ) -> LocalSource | None:
        """The blob that `url` names, None when it names another server.

        Raises: StorageError CannotVerifyCopySource: 404 when it is not there, 403 when the caller
            may not read it. NotImplemented for a parameter that is not served: without it, another
            content would be copied than the one that was named.
        """
        parts = urlsplit(url)
        listener = self._listener(parts, call)
        if listener is None:
            return None
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        fields = [("Host", parts.netloc), ("x-ms-version", call.caller.version)]
        if wanted.authorization is not None:
            fields.append(("Authorization", wanted.authorization))
        headers = Headers(tuple(fields))
        request = Request("GET", target, headers, _NoBody(), tls=parts.scheme == "https")
        try:
            is_blob = listener != one_port.NAME or self._router.take(request) is Service.BLOB
            asked = admission.read(self._context, request) if is_blob else None
        except StorageError:
            raise errors.invalid_header("x-ms-copy-source", parts.path) from None
        if asked is None or asked.addressed.resource is not Resource.BLOB:
            raise source_missing(blob_errors.BLOB_NOT_FOUND)
        asks = (permissions.READ, permissions.GET_TAGS) if wanted.with_tags else (permissions.READ,)
        return await self._admit(asked, call, asks)

    def _listener(self, parts: SplitResult, call: Call[Any]) -> str | None:
        """The name of the listener that reads this URL; None when it names another server."""
        # The name under which the caller reached this server is this server, mapped ports included.
        if parts.netloc.lower() == call.client.host.lower():
            return one_port.NAME if _is_mounted(call) else Service.BLOB.value
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
        hostname = parts.hostname or ""
        ours = path.account_of_host(hostname, self._context.suffixes) is not None
        if ours or hostname in _LOOPBACK:
            for name in (Service.BLOB.value, one_port.NAME):
                if self._ports.get(name) == port:
                    return name
        return None

    async def _admit(
        self, asked: Asked, call: Call[Any], asks: tuple[Permission, ...]
    ) -> LocalSource:
        context = self._context
        target = asked.addressed.target
        assert target.container is not None and target.blob is not None
        place = await context.services.place(Service.BLOB, target.account, target.container)
        try:
            claim = self._claim(asked, call)
            for permission in asks:
                authorize(
                    claim,
                    permission,
                    asked.signed,
                    permissions.NOBODY if place is None else place.public_access,
                    () if place is None else place.policies,
                    context.clock.wall_ticks(),
                    call.client.peer,
                    asked.request.tls,
                    call.caller.version,
                )
        except StorageError as refusal:
            row = blob_errors.COPY_SOURCE_FORBIDDEN
            raise cannot_read(row, refusal.message, refusal.row.status, refusal.row.code) from None
        context.endpoint.refuse_unserved(asked.request.headers, asked.query)
        if place is None:
            raise source_missing(blob_errors.CONTAINER_NOT_FOUND)
        return _named(asked, target.container, target.blob, place.generation)

    def _claim(self, asked: Asked, call: Call[Any]) -> Claim:
        context = self._context
        wall_ticks = context.clock.wall_ticks()
        claim = authenticate(
            asked.request, asked.signed, context.accounts, wall_ticks, context.identities
        )
        if not isinstance(claim, Anonymous) or claim.account != call.target.account:
            return claim
        if call.caller.owner:
            return SharedKeyClaim(call.target.account)
        return call.caller.bearer or claim


def _is_mounted(call: Call[Any]) -> bool:
    """Whether the caller came by the port of all services, and in a way that its path shows."""
    return isinstance(call.client, Request) and bool(call.client.mount)


def _named(asked: Asked, container: str, blob: str, generation: int) -> LocalSource:
    """The source. Raises: StorageError CannotVerifyCopySource when nothing can have its name."""
    text, version_text = asked.query.get("snapshot"), asked.query.get("versionid")
    try:
        names.check_blob(blob, container)
        snapshot = None if text is None else snapshots.snapshot_time(text)
        version = None if version_text is None else snapshots.version_time(version_text)
        snapshots.check_one_state(snapshot, version)
    except StorageError as refusal:
        row = blob_errors.CANNOT_VERIFY_COPY_SOURCE
        raise cannot_read(row, refusal.message, refusal.row.status, refusal.row.code) from None
    account = asked.addressed.target.account
    return LocalSource(account, container, generation, blob, snapshot, version)
