"""The whole path of a request, in one short function: read this file first.

    authenticate -> match -> place -> authorize -> decode -> run -> encode

Lives here: the order of the steps and the one place where errors become answers. Must not live
here: decisions, sockets. Source: conditions.md section 10 (order of checks); limits-and-errors
section 1.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from strongroom import errors
from strongroom.auth.accounts import Accounts
from strongroom.auth.authenticate import authenticate
from strongroom.auth.authorize import Grant, authorize
from strongroom.auth.claims import Anonymous, Claim, SasClaim
from strongroom.auth.request import Service
from strongroom.auth.request import Target as Signed
from strongroom.clock import Clock, guid
from strongroom.engines.base import EngineError, Full
from strongroom.errors import StorageError
from strongroom.operations import codec, unserved
from strongroom.operations.codec import Admitted
from strongroom.operations.routes import Routes
from strongroom.operations.spec import Operation, Origin, Resource
from strongroom.services.calls import Place
from strongroom.services.runner import Services
from strongroom.values import PublicAccess, rfc1123
from strongroom.wire import errors_xml, path, query
from strongroom.wire.http import Request, Response
from strongroom.wire.path import Target
from strongroom.wire.query import Query

DEFAULT_VERSION: Final = "2021-12-02"
ERROR_CODE_SINCE: Final = "2017-07-29"
_log = logging.getLogger("strongroom")


@dataclass(frozen=True, slots=True)
class Context:
    """What the path of a request needs: composed once (app.py).

    `suffixes` are the domains below which a label is an account. `strict` makes an error that an
    operation does not declare a failure of the server (tests).
    """

    services: Services
    routes: Routes
    accounts: Accounts
    clock: Clock
    service: Service = Service.BLOB
    suffixes: tuple[str, ...] = path.BLOB_SUFFIXES
    strict: bool = False


async def respond(context: Context, request: Request) -> Response:
    """Answer one request. Never raises a StorageError: refusals are answers too."""
    request_id = guid(context.clock)
    version = request.headers.get("x-ms-version") or DEFAULT_VERSION
    try:
        response = await _answer(context, request)
    except StorageError as error:
        response = render_error(error, request, request_id, context.clock.wall_ticks())
    except EngineError as error:
        refusal = _broken(error)
        response = render_error(refusal, request, request_id, context.clock.wall_ticks())
    _add_common_headers(response, request, request_id, version, context)
    return response


async def _answer(context: Context, request: Request) -> Response:
    now = context.clock.wall_ticks()
    asked = query.parse(request.query)
    target = path.parse(request.path, request.headers.get("host"), context.suffixes)
    target, resource = _resource(target, asked)
    signed = _signed(context.service, target, asked)
    claim = authenticate(request, signed, context.accounts, now)
    operation = context.routes.match(request.method, resource, asked, request.headers)
    place = await _place(context, operation, target, request)
    version = _version(request, asked, claim)

    def admit(there: Place | None) -> Grant:
        access = PublicAccess.NONE if there is None else there.record.public_access
        policies = () if there is None else there.record.policies
        return authorize(
            claim,
            operation.permission,
            signed,
            access,
            policies,
            context.clock.wall_ticks(),
            request.peer,
            request.tls,
            version,
        )

    grant = admit(place)
    _refuse_unserved(operation, request, asked, target)

    def again(there: Place | None) -> None:
        admit(there)

    served = version or DEFAULT_VERSION
    call = await codec.decode(
        operation, request, asked, Admitted(target, place, grant, again, served)
    )
    assert operation.run is not None
    try:
        result = await operation.run(context.services, call)
    except StorageError as error:
        if context.strict and not operation.may_fail_with(error.row):
            raise AssertionError(f"{operation.name} does not declare {error.row.code}") from error
        raise
    return codec.encode(operation, result, call, _origin(context, request, target, asked))


def _resource(target: Target, asked: Query) -> tuple[Target, Resource]:
    """How deep the URL goes; a lone segment without `restype` is a blob of the root container."""
    if target.container is None:
        return target, Resource.SERVICE
    if target.blob is None and "restype" not in asked and asked.get("comp") != "list":
        target = target.in_root()
    return target, Resource.CONTAINER if target.blob is None else Resource.BLOB


def _signed(service: Service, target: Target, asked: Query) -> Signed:
    return Signed(
        service,
        target.account,
        target.container,
        target.blob,
        asked.get("snapshot"),
        asked.get("versionid"),
    )


async def _place(
    context: Context, operation: Operation, target: Target, request: Request
) -> Place | None:
    if target.container is None:
        return None
    return await context.services.place(target.account, target.container)


def _version(request: Request, asked: Query, claim: Claim) -> str | None:
    """x-ms-version, `api-version`, or the SAS's own; None when the request names none."""
    given = request.headers.get("x-ms-version") or asked.get("api-version")
    if given is None and isinstance(claim, SasClaim):
        given = claim.sas.sv
    if given is None:
        return None if isinstance(claim, Anonymous) else DEFAULT_VERSION
    if not _is_version(given):
        raise errors.invalid_header("x-ms-version", given)
    return given


def _is_version(text: str) -> bool:
    digits = text.replace("-", "")
    return (
        len(text) == 10
        and text[4] == text[7] == "-"
        and len(digits) == 8
        and digits.isascii()
        and digits.isdigit()
    )


def _refuse_unserved(operation: Operation, request: Request, asked: Query, target: Target) -> None:
    if operation.run is None:
        raise unserved.not_served(f"The operation {operation.name}")
    unserved.refuse_unserved(request.headers, asked)
    if target.secondary and operation.writes():
        raise StorageError(
            errors.INSUFFICIENT_ACCOUNT_PERMISSIONS, "Write operations are not allowed."
        )


def _origin(context: Context, request: Request, target: Target, asked: Query) -> Origin:
    scheme = "https" if request.tls else "http"
    host = request.headers.get("host") or "localhost"
    account = target.account + (path.SECONDARY if target.secondary else "")
    prefix = "" if target.host_style else f"{account}/"
    return Origin(f"{scheme}://{host}/{prefix}", asked)


def _broken(error: EngineError) -> StorageError:
    if isinstance(error, Full):
        return StorageError(errors.INSUFFICIENT_STORAGE)
    _log.error("the storage engine failed: %s", error)
    return StorageError(errors.INTERNAL_ERROR)


def render_error(
    error: StorageError, request: Request | None, request_id: str, now: int
) -> Response:
    """The answer of a refusal: XML body unless HEAD or 304, code in x-ms-error-code."""
    headers = list(error.headers)
    headers.append(("x-ms-error-code", error.row.code))
    reason = error.message.split("\n", 1)[0]
    if error.row.status == 304 or (request is not None and request.method == "HEAD"):
        return Response(error.row.status, headers, reason=reason)
    body = errors_xml.error_body(error, request_id, now)
    headers.append(("Content-Type", "application/xml"))
    return Response(error.row.status, headers, body, len(body), reason)


_SERVER: Final = {
    service: f"Windows-Azure-{service.value.title()}/1.0 Microsoft-HTTPAPI/2.0"
    for service in Service
}


def _add_common_headers(
    response: Response, request: Request, request_id: str, version: str, context: Context
) -> None:
    headers = response.headers
    headers.append(("Server", _SERVER[context.service]))
    headers.append(("x-ms-request-id", request_id))
    headers.append(("x-ms-version", version))
    headers.append(("Date", rfc1123(context.clock.wall_ticks())))
    client_id = request.headers.get("x-ms-client-request-id")
    if client_id and len(client_id) <= 1024 and client_id.isascii() and client_id.isprintable():
        headers.append(("x-ms-client-request-id", client_id))
