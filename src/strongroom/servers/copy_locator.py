"""Finds the copy sources that are blobs or files of this server, and authorizes their reading.

Lives here: the recognition of this server in a URL. The caller then passes the same authentication
and authorization as for a GET of that URL. Must not live here: reading the source (services/).
Source: "Copy Blob" and "Copy File", remarks on authorization of the source; reference section 8.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from strongroom.auth.authenticate import authenticate
from strongroom.auth.authorize import Permission, authorize
from strongroom.auth.claims import Anonymous, Claim, SharedKeyClaim
from strongroom.auth.request import Service
from strongroom.errors import blob as blob_errors
from strongroom.errors import copies as copy_errors
from strongroom.errors import core as errors
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.operations.core import permissions
from strongroom.operations.core.spec import Resource
from strongroom.semantics.blob import snapshots
from strongroom.semantics.core import names
from strongroom.semantics.core.snapshot_times import snapshot_time
from strongroom.servers import one_port
from strongroom.servers.one_port import OnePort
from strongroom.servers.requests import admission
from strongroom.servers.requests.admission import ParsedRequest, ServiceContext
from strongroom.services.core.calls import Call
from strongroom.services.core.copies.sources import (
    WHOLE,
    LocalSource,
    SourceRequest,
    cannot_read,
    not_allowed,
    source_missing,
)
from strongroom.wire.core import path
from strongroom.wire.core.http import Headers, Request


class _SourceKind(NamedTuple):
    """The kind of resource that a service can copy from, its permission and its error codes."""

    resource: Resource
    permission: Permission
    missing: ErrorCode
    place_missing: ErrorCode


_SERVICES: Final = {
    Service.BLOB: _SourceKind(
        Resource.BLOB,
        permissions.READ,
        blob_errors.BLOB_NOT_FOUND,
        errors.CONTAINER_NOT_FOUND,
    ),
    Service.FILE: _SourceKind(
        Resource.FILE,
        permissions.FILE_READ,
        errors.RESOURCE_NOT_FOUND,
        errors.SHARE_NOT_FOUND,
    ),
}
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

    Services get it at their construction, before their contexts exist: `connect` names those.

    Arguments:
        ports: the ports that this server listens on, by the listener's name. The mapping is filled
            while the server starts.
        router: routes the URLs of the port that serves all services; also an attribute.
    """

    def __init__(self, ports: Mapping[str, int], router: OnePort) -> None:
        self._contexts: Mapping[Service, ServiceContext] = {}
        self._ports = ports
        self.router = router

    def connect(self, contexts: Mapping[Service, ServiceContext]) -> None:
        """Find the sources of these services. Call it before any request is served."""
        self._contexts = contexts

    async def locate(
        self, url: str, call: Call[Any], wanted: SourceRequest = WHOLE
    ) -> LocalSource | None:
        """Return the blob or file that `url` names; None if the URL names another server.

        Raises: StorageError CannotVerifyCopySource: 404 if the source does not exist, 401 without
            credentials for a private one, 403 if they are refused. NotImplemented for a parameter
            that is not served. If it were ignored, the copy would have another content than the URL
            names.
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
            is_routed = listener == one_port.NAME
            service = self.router.route_request(request) if is_routed else Service(listener)
            sources = _SERVICES.get(service)
            parsed = None
            if sources is not None:
                parsed = admission.read(self._contexts[service], request)
        except StorageError:
            raise errors.invalid_header("x-ms-copy-source", parts.path) from None
        if sources is None or parsed is None or parsed.addressed.resource is not sources.resource:
            raise source_missing(_SERVICES[call.target.service].missing)
        asks: tuple[Permission, ...] = (sources.permission,)
        if wanted.with_tags and service is Service.BLOB:
            asks = (*asks, permissions.GET_TAGS)
        return await self._admit(service, parsed, call, wanted, asks)

    def _listener(self, parts: SplitResult, call: Call[Any]) -> str | None:
        """The name of the listener that reads this URL; None when it names another server."""
        # The caller's own Host header names this server, even if a proxy maps the port.
        if parts.netloc.lower() == call.client.host.lower():
            # A mount is the port of all services, with a path that begins with a service's name.
            is_mounted = isinstance(call.client, Request) and bool(call.client.mount)
            return one_port.NAME if is_mounted else call.target.service.value
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
        hostname = parts.hostname or ""
        for service in _SERVICES:
            suffixes = self._contexts[service].suffixes
            is_own_host = path.account_of_host(hostname, suffixes) is not None
            if is_own_host or hostname in _LOOPBACK:
                for name in (service.value, one_port.NAME):
                    if self._ports.get(name) == port:
                        return name
        return None

    async def _admit(
        self,
        service: Service,
        parsed: ParsedRequest,
        call: Call[Any],
        wanted: SourceRequest,
        asks: tuple[Permission, ...],
    ) -> LocalSource:
        context, target = self._contexts[service], parsed.addressed.target
        assert target.container is not None and target.blob is not None
        place = await context.services.place(service, target.account, target.container)
        try:
            claim = _claim(context, parsed, call, wanted)
            for permission in asks:
                authorize(
                    claim,
                    permission,
                    parsed.signed,
                    permissions.NOBODY if place is None else place.public_access,
                    () if place is None else place.policies,
                    context.clock.wall_ticks(),
                    call.client.peer,
                    parsed.request.tls,
                    call.caller.version,
                )
        except StorageError as refusal:
            row = not_allowed(refusal.row.status)
            raise cannot_read(row, refusal.message, refusal.row.status, refusal.row.code) from None
        context.endpoint.refuse_unserved(parsed.request.headers, parsed.query)
        if place is None:
            raise source_missing(_SERVICES[service].place_missing)
        if service is Service.BLOB:
            return _blob_source(parsed, target.container, target.blob, place.generation)
        return LocalSource(
            target.account,
            target.container,
            place.generation,
            target.blob,
            snapshot=_share_snapshot(parsed),
            service=service,
            trailing_dots=wanted.trailing_dots,
        )


def _claim(
    context: ServiceContext, parsed: ParsedRequest, call: Call[Any], wanted: SourceRequest
) -> Claim:
    wall_ticks = context.clock.wall_ticks()
    claim = authenticate(
        parsed.request, parsed.signed, context.accounts, wall_ticks, context.identities
    )
    is_own = claim.account == call.target.account and wanted.by_caller
    if not isinstance(claim, Anonymous) or not is_own:
        return claim
    if call.caller.owner:
        return SharedKeyClaim(call.target.account)
    return call.caller.bearer or claim


def _blob_source(parsed: ParsedRequest, container: str, blob: str, generation: int) -> LocalSource:
    text, version_text = parsed.query.get("snapshot"), parsed.query.get("versionid")
    try:
        names.check_blob(blob, container)
        snapshot = None if text is None else snapshot_time(text)
        version = None if version_text is None else snapshots.version_time(version_text)
        snapshots.check_one_state(snapshot, version)
    except StorageError as refusal:
        raise _nothing_named(refusal) from None
    account = parsed.addressed.target.account
    return LocalSource(account, container, generation, blob, snapshot, version)


def _share_snapshot(parsed: ParsedRequest) -> int | None:
    """In ticks; None if the URL names no snapshot."""
    text = parsed.query.get("sharesnapshot")
    try:
        return None if text is None else snapshot_time(text, "sharesnapshot")
    except StorageError as refusal:
        raise _nothing_named(refusal) from None


def _nothing_named(refusal: StorageError) -> StorageError:
    row = copy_errors.CANNOT_VERIFY_COPY_SOURCE
    return cannot_read(row, refusal.message, refusal.row.status, refusal.row.code)
