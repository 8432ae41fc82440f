"""A kept request as authentication takes it: made anew of the head that was kept.

Lives here: that, and the strings that were signed. Must not live here: the rules of signing
(auth/canonical.py, auth/sas_signature.py), what differed (signatures.py).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import unquote

from strongroom.auth.canonical import StringsToSign
from strongroom.auth.request import Service, Target
from strongroom.auth.sas import decode_query, is_sas, parse_sas
from strongroom.auth.sas_signature import string_to_sign
from strongroom.auth.shared_key import Credential, parse_authorization
from strongroom.errors.core import StorageError
from strongroom.servers.console.requests.heads import SentHead
from strongroom.servers.console.requests.kept import ShortRecord
from strongroom.servers.console.requests.scope import SERVICES
from strongroom.wire.core.http import Headers, Request
from strongroom.wire.core.path import UrlTarget, parse

_SIGNED_BELOW: Final = (Service.BLOB, Service.FILE)


class _NoBody:
    """The body of a kept request, of which nothing is kept."""

    size_bytes: int | None = None
    is_held_back = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        empty: tuple[bytes, ...] = ()
        for piece in empty:
            yield piece

    async def read_all(self, max_bytes: int) -> bytes:
        return b""


def request_of(head: SentHead, record: ShortRecord, *, tls: bool) -> Request:
    """Return a request with the head that was sent, and without its body."""
    request = Request(head.method, head.target, Headers(head.fields), _NoBody(), tls=tls)
    request.mount = mount_of(request.path, record)
    return request


def mount_of(path: str, record: ShortRecord) -> str:
    """Return the part of a path that selects the service on a port of all services."""
    service = SERVICES.get(record.service)
    if service is None or not path.startswith(f"/{service.value}/"):
        return ""
    following = path.split("/")[2].removesuffix("-secondary")
    is_mount = record.through_console or unquote(following) == record.account
    return f"/{service.value}" if is_mount else ""


def credential_of(request: Request) -> Credential | None:
    """Return the SharedKey credential of a request; None if it has none that can be read."""
    authorization = request.headers.get("authorization")
    if authorization is None:
        return None
    try:
        return parse_authorization(authorization)
    except StorageError:
        return None


def has_sas(request: Request) -> bool:
    """Whether a SAS decides about a request."""
    return "authorization" not in request.headers and is_sas(request.query or "")


def signed_string(request: Request, record: ShortRecord) -> str | None:
    """Return the string that the server compared the signature with; None without a signature."""
    service = SERVICES.get(record.service)
    if service is None:
        return None
    credential = credential_of(request)
    if credential is not None:
        texts = StringsToSign(credential.scheme, service, request, record.account)
        return texts.of().decode("utf-8", "replace")
    return _sas_string(request, service, record) if has_sas(request) else None


def _sas_string(request: Request, service: Service, record: ShortRecord) -> str | None:
    try:
        pairs = decode_query(request.query)
        sas = parse_sas(pairs, service)
        return string_to_sign(sas, _target(request, service, record), request.headers, pairs)
    except (StorageError, ValueError):
        return None  # the token is malformed, which is why it was refused


def _target(request: Request, service: Service, record: ShortRecord) -> Target:
    """Return the resource that a SAS is signed for. Raises StorageError."""
    named = url_target(request, record)
    if service is Service.BLOB and named.container is not None and named.blob is None:
        named = named.in_root() if record.container == "$root" else named
    pairs = {name.lower(): value for name, value in decode_query(request.query)}
    return Target(
        service,
        named.account,
        record.container or named.container,
        named.blob if service in _SIGNED_BELOW else None,
        pairs.get("snapshot"),
        pairs.get("versionid"),
    )


def url_target(request: Request, record: ShortRecord) -> UrlTarget:
    """Return the resource that the path of a request names. Raises StorageError InvalidUri."""
    target = parse(request.path, None, request.mount)
    if target.account == record.account:
        return target
    return parse(request.path, record.account, request.mount)
