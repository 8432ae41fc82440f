"""The whole path of a request, in one short function: read this file first.

    read -> authenticate -> match -> place -> authorize -> decode -> run -> encode

Lives here: the order of the steps (those up to the typed call are in admission.py), and the one
place where errors become answers. Source: limits-and-errors section 1 (headers of every answer).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

from strongroom import limits
from strongroom.auth.request import Service
from strongroom.errors.core import AUTHENTICATION_FAILED, INVALID_TOKEN, StorageError
from strongroom.operations.core import codec
from strongroom.operations.core.spec import Operation, Origin, Resource
from strongroom.servers.http.answer import broken_refusal
from strongroom.servers.requests import batches, transactions
from strongroom.servers.requests.admission import (
    DEFAULT_VERSION,
    AnsweredElsewhere,
    ParsedRequest,
    ServiceContext,
    admit,
    identify,
    is_version,
    read,
)
from strongroom.servers.requests.batches import BatchRequest
from strongroom.servers.requests.facts import Refusal, refusal_of
from strongroom.services.core import account, timeouts
from strongroom.services.core.calls import Call
from strongroom.services.core.outcomes import BROKEN
from strongroom.values import rfc1123
from strongroom.wire.core.http import Request, Response
from strongroom.wire.core.query import Query

ERROR_CODE_SINCE: Final = "2017-07-29"
# A constant, since an attribute access on an enumeration costs a call in Python 3.11.
_BATCH: Final = Resource.BATCH
_FAILED_LOGONS: Final = (AUTHENTICATION_FAILED, INVALID_TOKEN)
T = TypeVar("T")
_log = logging.getLogger(__name__)


async def respond(context: ServiceContext, request: Request) -> Response:
    """Answer one request. A refusal is an answer too, so this never raises a StorageError."""
    request_id = request.request_id = request.request_id or context.request_ids()
    parsed: ParsedRequest | None = None
    try:
        parsed = read(context, request)
        response = await _answer(context, parsed, request_id)
    except AnsweredElsewhere as elsewhere:
        assert parsed is not None
        return _passed_on(context, parsed, elsewhere.response)
    except StorageError as error:
        response = _refusal(context, error, request, request_id, parsed)
    except BROKEN as error:
        response = _refusal(context, broken_refusal(error, request), request, request_id, parsed)
    version = _served_version(request, parsed)
    _add_common_headers(response, request, request_id, version, context)
    if parsed is not None:
        origin = request.headers.get("origin")
        # A preflight request has its own answer.
        if origin is not None and request.method != "OPTIONS":
            # CORS headers come last, since a rule may expose any other header of the answer.
            await _add_cors(context, parsed, response, origin)
        response.operation = parsed.operation.name if parsed.operation is not None else ""
        response.facts = parsed
    return response


def _passed_on(context: ServiceContext, parsed: ParsedRequest, response: Response) -> Response:
    """Return the answer of another gateway, with what the observers of this one want to know. It
    has all of its headers."""
    operation = parsed.operation
    assert operation is not None
    code = next((text for name, text in response.headers if name == "x-ms-error-code"), None)
    if code is not None:
        rows = (*operation.fails, *context.endpoint.implied_errors(operation))
        row = next((one for one in rows if one.code == code), None)
        parsed.outcome = None if row is None else Refusal(row, None)
    response.operation, response.facts = operation.name, parsed
    return response


async def _answer(context: ServiceContext, parsed: ParsedRequest, request_id: str) -> Response:
    if context.identities is not None:
        await context.identities.ready(parsed.request)
    claim = identify(context, parsed)
    operation, call = await admit(context, parsed, claim)
    if operation.parts or operation.resource is _BATCH:
        batch = BatchRequest(context, parsed, claim, operation, call, _origin(parsed), request_id)
        if operation.parts:
            return await _with_timeout(parsed.query, batches.answer(batch, _respond_to_part))
        return await transactions.answer(batch, _run)
    result = await _run(context, operation, call, parsed.query)
    response = codec.encode(operation, result, call, _origin(parsed))
    if isinstance(response.body, bytes):
        return response
    return await codec.complete(response, context.services.turns)


async def _respond_to_part(context: ServiceContext, parsed: ParsedRequest) -> Response:
    """By the steps of a single request. A refusal is an answer too, so this never raises a
    StorageError."""
    request, request_id = parsed.request, context.request_ids()
    try:
        if context.identities is not None:
            await context.identities.ready(request)
        claim = identify(context, parsed)
        operation, call = await admit(context, parsed, claim)
        result = await _run(context, operation, call, parsed.query)
        encoded = codec.encode(operation, result, call, _origin(parsed))
        response = await codec.complete(encoded, context.services.turns)
    except StorageError as error:
        response = _refusal(context, error, request, request_id, parsed)
    except BROKEN as error:
        response = _refusal(context, broken_refusal(error, request), request, request_id, parsed)
    version = parsed.version or parsed.batch_version or DEFAULT_VERSION
    response.headers += _identifying(request, request_id, version)
    response.facts = parsed
    return response


async def _run(
    context: ServiceContext, operation: Operation, call: Call[Any], parameters: Query
) -> Any:
    assert operation.run is not None
    try:
        return await _with_timeout(parameters, operation.run(context.services, call))
    except StorageError as error:
        if context.strict and not context.endpoint.declares(operation, error.row):
            raise AssertionError(f"{operation.name} does not declare {error.row.code}") from error
        raise


def _with_timeout(parameters: Query, result: Awaitable[T]) -> Awaitable[T]:
    """The result must come within the `timeout` of the query."""
    limit = parameters.get("timeout")
    if limit is None:
        return result
    # Nine digits are no practical limit, and a float may not hold more digits exactly.
    return timeouts.with_timeout(result, int(limit[:9]))


def _origin(parsed: ParsedRequest) -> Origin:
    request = parsed.request
    host = request.headers.get("host") or ""
    return Origin(parsed.query, request.headers, host, request.tls, parsed.addressed.target)


def refuse(context: ServiceContext, error: StorageError, request: Request | None) -> Response:
    """The whole answer of a refusal that happened outside the path of a request.

    `request` is the one whose body or answer failed; None if none could be read.
    """
    known = "" if request is None else request.request_id
    request_id = known or context.request_ids()
    response = _refusal(context, error, request, request_id, None)
    version = DEFAULT_VERSION if request is None else _served_version(request, None)
    _add_common_headers(response, request, request_id, version, context)
    return response


def _refusal(
    context: ServiceContext,
    error: StorageError,
    request: Request | None,
    request_id: str,
    parsed: ParsedRequest | None,
) -> Response:
    """Its code is in x-ms-error-code, and usually it has a body.

    It has none if the request was HEAD or the status is 304.
    """
    if error.row in _FAILED_LOGONS and request is not None and parsed is not None:
        _note_failed_logon(context, error, request, parsed)
    refusal = refusal_of(error)
    if parsed is not None:
        parsed.outcome = refusal
    response = _rendered(context, error, request, request_id, parsed)
    response.facts = refusal
    return response


def _rendered(
    context: ServiceContext,
    error: StorageError,
    request: Request | None,
    request_id: str,
    parsed: ParsedRequest | None,
) -> Response:
    headers = list(error.headers)
    version = None if request is None else request.headers.get("x-ms-version")
    if not version or version >= ERROR_CODE_SINCE:
        headers.append(("x-ms-error-code", error.row.code))
    reason = error.message.split("\n", 1)[0]
    if error.row.status == 304 or (request is not None and request.method == "HEAD"):
        return Response(error.row.status, headers, reason=reason)
    operation = None if parsed is None else parsed.operation
    now = context.clock.wall_ticks()
    refusal = context.endpoint.refusal(error, request_id, now, operation)
    headers.append(("Content-Type", refusal.content_type))
    return Response(error.row.status, headers, refusal.body, len(refusal.body), reason)


def _note_failed_logon(
    context: ServiceContext, error: StorageError, request: Request, parsed: ParsedRequest
) -> None:
    now = asyncio.get_running_loop().time()
    how = f"{context.endpoint.service.value} service, {error.row.code}"
    context.failed_logons.note(how, parsed.addressed.target.account, request.peer, now)


async def _add_cors(
    context: ServiceContext, parsed: ParsedRequest, response: Response, origin: str
) -> None:
    """Add the CORS headers for an actual request of another origin."""
    names = [name for name, _ in response.headers]
    try:
        response.headers.extend(
            await account.cors_headers(
                context.services,
                context.endpoint.service,
                parsed.addressed.target.account,
                origin,
                parsed.request.method,
                names,
            )
        )
    except BROKEN:
        # The answer is sent without them; a browser then hides it from the page.
        _log.warning("CORS rules cannot be read; the answer goes out without CORS headers")


_SERVER: Final = {
    service: f"Windows-Azure-{service.value.title()}/1.0 Microsoft-HTTPAPI/2.0"
    for service in Service
}


def _served_version(request: Request, parsed: ParsedRequest | None) -> str:
    if parsed is not None and parsed.version is not None:
        return parsed.version
    version = request.headers.get("x-ms-version")
    return version if version is not None and is_version(version) else DEFAULT_VERSION


def _add_common_headers(
    response: Response,
    request: Request | None,
    request_id: str,
    version: str,
    context: ServiceContext,
) -> None:
    headers = response.headers
    headers += (
        ("Server", _SERVER[context.endpoint.service]),
        *context.endpoint.always,
        ("Date", rfc1123(context.clock.wall_ticks())),
        *_identifying(request, request_id, version),
    )


def _identifying(request: Request | None, request_id: str, version: str) -> list[tuple[str, str]]:
    """Return the headers that name the request, and the version by which it was interpreted."""
    headers = [("x-ms-request-id", request_id), ("x-ms-version", version)]
    client_id = None if request is None else request.headers.get("x-ms-client-request-id")
    most = limits.CLIENT_REQUEST_ID_CHARS_MAX
    if client_id and len(client_id) <= most and _is_visible(client_id):
        headers.append(("x-ms-client-request-id", client_id))
    return headers


def _is_visible(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text
