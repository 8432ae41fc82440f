"""The whole path of a request, in one short function: read this file first.

    authenticate -> match -> place -> authorize -> decode -> run -> encode

Lives here: the order of the steps, and the one place where errors become answers. Must not live
here: decisions, sockets. Source: conditions.md section 10 (order of checks); limits-and-errors
section 1 (headers of every answer).
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any, Final

from strongroom import errors
from strongroom.auth.accounts import Accounts
from strongroom.auth.authenticate import authenticate
from strongroom.auth.authorize import Grant, authorize
from strongroom.auth.claims import Anonymous, Claim, SasClaim, SharedKeyClaim
from strongroom.auth.request import Service
from strongroom.auth.request import Target as Signed
from strongroom.clock import Clock, RequestIds
from strongroom.errors import StorageError
from strongroom.operations import codec, fields, unserved
from strongroom.operations.codec import Admitted
from strongroom.operations.routes import Routes
from strongroom.operations.spec import Operation, Origin, Resource
from strongroom.services import account
from strongroom.services.calls import Call, Place
from strongroom.services.outcomes import BROKEN, refusal_of
from strongroom.services.runner import Services
from strongroom.values import PublicAccess, rfc1123
from strongroom.wire import errors_xml, path, query
from strongroom.wire.http import Request, Response
from strongroom.wire.path import Target
from strongroom.wire.query import Query

DEFAULT_VERSION: Final = "2021-12-02"
OLDEST_VERSION: Final = "2009-09-19"
ERROR_CODE_SINCE: Final = "2017-07-29"
_CLIENT_ID_CHARS_MAX: Final = 1024
_log = logging.getLogger(__name__)


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
    request_ids: RequestIds = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "request_ids", RequestIds(self.clock))


@dataclass(slots=True)
class Asked:
    """A request whose URL has been read: what it names, and what is found out on the way."""

    request: Request
    query: Query
    target: Target
    resource: Resource
    signed: Signed
    version: str | None = None
    operation: Operation | None = None


async def respond(context: Context, request: Request) -> Response:
    """Answer one request. Never raises a StorageError: refusals are answers too."""
    request_id = context.request_ids()
    asked: Asked | None = None
    try:
        asked = read(context, request)
        response = await _answer(context, asked)
    except StorageError as error:
        response = render_error(error, request, request_id, context.clock.wall_ticks())
    except BROKEN as error:
        refusal = refusal_of(error)
        # A full disk is told once by the engine; it is no failure of every request again.
        level = logging.DEBUG if refusal.row is errors.INSUFFICIENT_STORAGE else logging.ERROR
        _log.log(level, "the storage engine cannot serve: %s", error)
        response = render_error(refusal, request, request_id, context.clock.wall_ticks())
    version = _served_version(request, asked)
    _add_common_headers(response, request, request_id, version, context)
    if asked is not None:
        # After all others: a rule may expose any header of the answer.
        await _add_cors(context, asked, response)
        response.operation = asked.operation.name if asked.operation is not None else ""
    return response


def read(context: Context, request: Request) -> Asked:
    """What the URL names.

    Raises: StorageError InvalidUri, InvalidQueryParameterValue.
    """
    asked = query.parse(request.query)
    target = path.parse(request.path, request.headers.get("host"), context.suffixes)
    target, resource = locate(target, asked)
    signed = Signed(
        context.service,
        target.account,
        target.container,
        target.blob,
        asked.get("snapshot"),
        asked.get("versionid"),
    )
    return Asked(request, asked, target, resource, signed)


def locate(target: Target, asked: Query) -> tuple[Target, Resource]:
    """How deep the URL goes; a lone segment without `restype` is a blob of the root container."""
    if target.container is None:
        return target, Resource.SERVICE
    if target.blob is None and "restype" not in asked and asked.get("comp") != "list":
        target = target.in_root()
    return target, Resource.CONTAINER if target.blob is None else Resource.BLOB


async def _answer(context: Context, asked: Asked) -> Response:
    request = asked.request
    claim = _claim(context, asked)
    operation = context.routes.match(request.method, asked.resource, asked.query, request.headers)
    asked.operation = operation
    asked.version = await _version(context, asked, claim)
    place = await _place(context, operation, asked, claim)

    def admit(there: Place | None) -> Grant:
        return _admit(context, asked, claim, operation, there)

    grant = admit(place)
    _refuse_unserved(operation, asked)
    version = asked.version or DEFAULT_VERSION
    owner = isinstance(claim, SharedKeyClaim)
    admitted = Admitted(asked.target, place, grant, admit, version, owner)
    call = await codec.decode(operation, request, asked.query, admitted)
    result = await _run(context, operation, call, asked.query)
    return codec.encode(operation, result, call, _origin(asked))


def _claim(context: Context, asked: Asked) -> Claim:
    # A browser sends a preflight request before it may send credentials.
    if asked.request.method == "OPTIONS":
        return Anonymous(asked.target.account)
    return authenticate(asked.request, asked.signed, context.accounts, context.clock.wall_ticks())


async def _version(context: Context, asked: Asked, claim: Claim) -> str | None:
    """x-ms-version, `api-version`, or the SAS's own; None when an anonymous request names none.

    Raises: StorageError InvalidHeaderValue.
    """
    given = asked.request.headers.get("x-ms-version")
    if given is not None:
        if not _is_version(given):
            raise errors.invalid_header("x-ms-version", given)
        return given
    given = asked.query.get("api-version")
    if given is None and isinstance(claim, SasClaim):
        given = claim.sas.sv
    if given is not None:
        if not _is_version(given):
            raise errors.invalid_query("api-version", given)
        return given
    if isinstance(claim, Anonymous):
        return None
    found = await account.properties(context.services, asked.target.account)
    return found.default_service_version or DEFAULT_VERSION


def _is_version(text: str) -> bool:
    digits = text.replace("-", "")
    shaped = len(text) == 10 and text[4] == text[7] == "-" and len(digits) == 8
    return shaped and digits.isascii() and digits.isdigit() and text >= OLDEST_VERSION


async def _place(
    context: Context, operation: Operation, asked: Asked, claim: Claim
) -> Place | None:
    target = asked.target
    if target.container is None or operation.resource is Resource.ANY:
        return None
    place = await context.services.place(target.account, target.container)
    if place is None and operation.waits and operation.resource is Resource.CONTAINER:
        wait_s = fields.wait_s(asked.request, operation.waits)
        if wait_s:
            # Who may not look gets no hint, by waiting, that there is nothing.
            _admit(context, asked, claim, operation, None)
            return await context.services.await_place(
                target.account, target.container, wait_s, asked.request
            )
    return place


def _admit(
    context: Context, asked: Asked, claim: Claim, operation: Operation, place: Place | None
) -> Grant:
    if operation.resource is Resource.ANY:
        return Grant("", may_overwrite=False)
    return authorize(
        claim,
        operation.permission,
        asked.signed,
        PublicAccess.NONE if place is None else place.record.public_access,
        () if place is None else place.record.policies,
        context.clock.wall_ticks(),
        asked.request.peer,
        asked.request.tls,
        asked.version,
    )


def _refuse_unserved(operation: Operation, asked: Asked) -> None:
    if operation.run is None:
        raise unserved.not_served(f"The operation {operation.name}")
    unserved.refuse_unserved(asked.request.headers, asked.query)
    if asked.target.secondary and operation.writes():
        message = "Write operations are not allowed on the secondary endpoint."
        raise StorageError(errors.INSUFFICIENT_ACCOUNT_PERMISSIONS, message)


async def _run(context: Context, operation: Operation, call: Call[Any], asked: Query) -> Any:
    assert operation.run is not None
    limit = asked.get("timeout")
    try:
        if limit is None:
            return await operation.run(context.services, call)
        # Nine digits are for ever; of more, a float could not hold all.
        async with asyncio.timeout(int(limit[:9])):
            return await operation.run(context.services, call)
    except TimeoutError:
        raise StorageError(errors.OPERATION_TIMED_OUT) from None
    except StorageError as error:
        if context.strict and not operation.may_fail_with(error.row):
            raise AssertionError(f"{operation.name} does not declare {error.row.code}") from error
        raise


def _origin(asked: Asked) -> Origin:
    scheme = "https" if asked.request.tls else "http"
    host = asked.request.headers.get("host") or "localhost"
    target = asked.target
    secondary = path.SECONDARY if target.secondary else ""
    prefix = "" if target.host_style else f"{target.account}{secondary}/"
    return Origin(f"{scheme}://{host}/{prefix}", asked.query)


def refuse(context: Context, error: StorageError, request: Request | None) -> Response:
    """The whole answer of a refusal outside the path of a request: what could not be read as one
    (`request` None), what failed while its body came or its answer went."""
    request_id = context.request_ids()
    response = render_error(error, request, request_id, context.clock.wall_ticks())
    version = DEFAULT_VERSION if request is None else _served_version(request, None)
    _add_common_headers(response, request, request_id, version, context)
    return response


def render_error(
    error: StorageError, request: Request | None, request_id: str, now: int
) -> Response:
    """The answer of a refusal: its code in x-ms-error-code, and an XML body unless the request was
    HEAD or the answer is a 304."""
    headers = list(error.headers)
    version = None if request is None else request.headers.get("x-ms-version")
    if version is None or version >= ERROR_CODE_SINCE:
        headers.append(("x-ms-error-code", error.row.code))
    reason = error.message.split("\n", 1)[0]
    if error.row.status == 304 or (request is not None and request.method == "HEAD"):
        return Response(error.row.status, headers, reason=reason)
    body = errors_xml.error_body(error, request_id, now)
    headers.append(("Content-Type", "application/xml"))
    return Response(error.row.status, headers, body, len(body), reason)


async def _add_cors(context: Context, asked: Asked, response: Response) -> None:
    """What an actual request of another origin is told; preflight has its own answer."""
    origin = asked.request.headers.get("origin")
    if origin is None or asked.request.method == "OPTIONS":
        return
    names = [name for name, _ in response.headers]
    try:
        response.headers.extend(
            await account.cors_headers(
                context.services, asked.target.account, origin, asked.request.method, names
            )
        )
    except BROKEN:
        # The answer stands without them; a browser then keeps it from the page.
        _log.warning("CORS rules cannot be read; the answer goes out without CORS headers")


_SERVER: Final = {
    service: f"Windows-Azure-{service.value.title()}/1.0 Microsoft-HTTPAPI/2.0"
    for service in Service
}


def _served_version(request: Request, asked: Asked | None) -> str:
    if asked is not None and asked.version is not None:
        return asked.version
    given = request.headers.get("x-ms-version")
    return given if given is not None and _is_version(given) else DEFAULT_VERSION


def _add_common_headers(
    response: Response, request: Request | None, request_id: str, version: str, context: Context
) -> None:
    headers = response.headers
    headers.append(("Server", _SERVER[context.service]))
    headers.append(("x-ms-request-id", request_id))
    headers.append(("x-ms-version", version))
    headers.append(("Date", rfc1123(context.clock.wall_ticks())))
    client_id = None if request is None else request.headers.get("x-ms-client-request-id")
    if client_id and len(client_id) <= _CLIENT_ID_CHARS_MAX and _is_visible(client_id):
        headers.append(("x-ms-client-request-id", client_id))


def _is_visible(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text
