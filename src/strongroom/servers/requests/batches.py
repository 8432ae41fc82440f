"""Batches of independent requests, and what a part of any batch takes over from the batch.

    read -> match                                                   for every part, then
    authenticate -> match -> place -> authorize -> decode -> run -> encode    for every part

Lives here: what a part takes over from the request around it, which parts may be combined, and
their order. Must not live here: multipart itself (wire/core/multipart.py), parts that are one
transaction (transactions.py), the path of one request (pipeline.py). Source: "Blob Batch";
reference section 14.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from strongroom import limits
from strongroom.auth.bearer import bearer_text
from strongroom.auth.claims import Claim
from strongroom.auth.sas import is_sas
from strongroom.clock import guid
from strongroom.errors import blob as blob_errors
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.operations.core.spec import Operation, Origin, Resource
from strongroom.servers.requests.admission import ParsedRequest, ServiceContext, read
from strongroom.servers.requests.facts import PartOutcome
from strongroom.services.core.calls import Call
from strongroom.wire.core import multipart
from strongroom.wire.core import path as paths
from strongroom.wire.core.http import Headers, Request, Response
from strongroom.wire.core.multipart import PartRequest, PartResponse
from strongroom.wire.core.path import FullPath, UrlTarget

# So many parts of a batch run at the same time: enough to share one commit, and few enough that
# other requests are served in between.
CONCURRENT_PARTS_MAX: Final = 64
_AUTHORIZATION: Final = "authorization"
_VERSION: Final = "x-ms-version"
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

Fits = Callable[[UrlTarget], bool]
"""Whether a part may name this resource."""

RespondToPart = Callable[[ServiceContext, ParsedRequest], Awaitable[Response]]
"""Processes one part, from its credentials to its answer. Never raises a StorageError."""


class BatchRequest(msgspec.Struct, frozen=True):
    """The request that carries a batch.

    Attributes:
        operation, call: the batch's own, admitted; the call's input is the parts.
        request_id: x-ms-request-id of the answer.
    """

    context: ServiceContext
    parsed: ParsedRequest
    claim: Claim
    operation: Operation
    call: Call[Any]
    origin: Origin
    request_id: str


class PartBody:
    """The body of a part, which has arrived already."""

    is_held_back = False

    def __init__(self, content: bytes) -> None:
        self.size_bytes: int | None = len(content)
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content

    async def read_all(self, max_bytes: int) -> bytes:
        if len(self._content) > max_bytes:
            raise errors.body_too_large(max_bytes)
        return self._content


def with_host(part: PartRequest, batch_headers: Headers) -> list[tuple[str, str]]:
    """Return the headers of a part with the Host of the batch. No signature covers that header."""
    headers = [pair for pair in part.headers if pair[0].lower() != "host"]
    headers.append(("Host", batch_headers.get("host") or ""))
    return headers


def with_bearer(part: PartRequest, batch_headers: Headers) -> list[tuple[str, str]]:
    """Return the headers of a part; a part without credentials takes the batch's bearer token.

    The Host is that of the batch. A part with a bearer token and no version header also takes the
    version of the batch, since old versions refuse tokens. The signatures of other credentials may
    cover the headers as sent, so those headers stay.
    """
    headers = with_host(part, batch_headers)
    own = next((value for name, value in headers if name.lower() == _AUTHORIZATION), None)
    token = own or ""
    if own is None and not is_sas(part.url.partition("?")[2]):
        token = batch_headers.get(_AUTHORIZATION) or ""
    if bearer_text(token) is None:
        return headers
    if own is None:
        headers.append(("Authorization", token))
    version = batch_headers.get(_VERSION)
    if version is not None and all(name.lower() != _VERSION for name, _ in headers):
        headers.append((_VERSION, version))
    return headers


def read_part(
    batch: BatchRequest, part: PartRequest, headers: Sequence[tuple[str, str]], fits: Fits
) -> ParsedRequest:
    """The request of a part keeps the URL as sent, since that is signed.

    Arguments:
        headers: the headers of the part, and those that it takes over from the batch.
        fits: whether a part may name a resource. A container may have the name of the account or
            the mount. The path is therefore read with and without these, and the first reading that
            fits is taken.
    """
    outer, url = batch.parsed.request, part.url
    is_absolute = _ABSOLUTE.match(url) is not None
    if not is_absolute and not url.startswith("/"):
        url = f"/{url}"
    body = PartBody(part.body)
    request = Request(part.method, url, Headers(headers), body, outer.peer, outer.tls)
    full = _full_path(batch.parsed.addressed.target, request.path, is_absolute, fits)
    if request.path == full.path:
        request.mount = full.mount
    return read(batch.context, request, full)


def _full_path(batch_target: UrlTarget, path: str, is_absolute: bool, fits: Fits) -> FullPath:
    """Return the path of a part with mount and account.

    Clients may leave out the mount, or both, if the path of the batch has them.
    """
    mount = batch_target.mount
    account, label = (
        ("", batch_target.account)
        if batch_target.host_style
        else (f"/{batch_target.account}", None)
    )
    for lead in dict.fromkeys((mount + account, account)):
        if lead and path.startswith(f"{lead}/"):
            full = FullPath(f"{mount}{account}{path[len(lead) :]}", mount)
            if fits(paths.parse(full.path, label, mount)):
                return full
    if is_absolute and fits(paths.parse(path, label)):
        return FullPath(path)
    return FullPath(f"{mount}{account}{path}", mount)


async def answer(batch: BatchRequest, respond: RespondToPart) -> Response:
    """202 with the answers to the parts, in their order.

    No part is run unless every part may be in this batch.
    """
    if batch.operation.resource is Resource.CONTAINER and batch.call.place is None:
        raise StorageError(errors.CONTAINER_NOT_FOUND)
    requests: Sequence[PartRequest] = batch.call.input
    if len(requests) > limits.BLOB_BATCH_REQUESTS_MAX:
        raise StorageError(blob_errors.EXCEEDS_MAX_BATCH_REQUEST_COUNT)
    parts = await _read_all(batch, requests)
    answers = await _run_concurrently(batch.context, parts, respond)
    batch.parsed.outcome = tuple(map(_outcome, itertools.count(1), answers))
    # A random boundary, so that no content of an answer can contain it.
    written = multipart.write_independent(
        map(_answered, requests, answers), guid(batch.context.clock)
    )
    content_type, body = await batch.context.services.turns.run(written)
    return Response(202, [("Content-Type", content_type)], body, len(body))


async def _read_all(batch: BatchRequest, requests: Sequence[PartRequest]) -> list[ParsedRequest]:
    """A refusal is InvalidInput, which names the part and its error."""
    parts, kinds = list[ParsedRequest](), set[str]()
    for index, request in enumerate(requests):
        try:
            part = _read(batch, request)
            _check_allowed(batch, part)
        except StorageError as error:
            raise _invalid(index, error.message) from None
        assert part.operation is not None
        kinds.add(_kind(part.operation))
        if len(kinds) > 1:
            raise _invalid(index, "All requests of a batch must be of the same operation.")
        parts.append(part)
        await batch.context.services.turns.pause()
    return parts


def _kind(operation: Operation) -> str:
    """Return the name of an operation, which its variants share."""
    return operation.name.partition(" (")[0]


def _read(batch: BatchRequest, part: PartRequest) -> ParsedRequest:
    headers = with_bearer(part, batch.parsed.request.headers)
    parsed = read_part(batch, part, headers, partial(_fits, batch))
    parsed.batch_version = batch.call.caller.version
    request = parsed.request
    parsed.operation = batch.context.endpoint.routes.match(
        request.method, parsed.addressed.resource, parsed.query, request.headers
    )
    return parsed


def _fits(batch: BatchRequest, target: UrlTarget) -> bool:
    """Whether this is a blob of the same account, and of the batch's container if the batch has
    one."""
    outer = batch.parsed.addressed.target
    if target.blob is None or target.account != outer.account:
        return False
    return outer.container is None or target.container == outer.container


def _check_allowed(batch: BatchRequest, part: ParsedRequest) -> None:
    allowed, target = batch.operation.parts, part.addressed.target
    if part.operation not in allowed:
        named = " or ".join(dict.fromkeys(_kind(one) for one in allowed))
        raise StorageError(errors.INVALID_INPUT, f"The operation is not {named}.")
    is_container_batch = batch.operation.resource is Resource.CONTAINER
    if is_container_batch and target.container != batch.parsed.addressed.target.container:
        message = "The blob is not in the container of the batch."
        raise StorageError(errors.INVALID_INPUT, message)


def _invalid(index: int, reason: str) -> StorageError:
    text = f"{errors.INVALID_INPUT.message} Request {index} of the batch: {reason}"
    return StorageError(errors.INVALID_INPUT, text)


async def _run_concurrently(
    context: ServiceContext, parts: Sequence[ParsedRequest], respond: RespondToPart
) -> list[Response]:
    """Return the answers in order; a bounded number of parts runs at once."""
    if len(parts) == 1:
        return [await respond(context, parts[0])]
    answers: list[Response] = []
    for at in range(0, len(parts), CONCURRENT_PARTS_MAX):
        begun = [_in_turn(context, part, respond) for part in parts[at : at + CONCURRENT_PARTS_MAX]]
        some = await asyncio.gather(*begun, return_exceptions=True)
        for one in some:
            if isinstance(one, BaseException):
                raise one
            answers.append(one)
    return answers


async def _in_turn(
    context: ServiceContext, part: ParsedRequest, respond: RespondToPart
) -> Response:
    """Return the answer to a part. Each turn of the loop starts some parts, in their order."""
    await context.services.turns.pause()
    return await respond(context, part)


def _outcome(number: int, response: Response) -> PartOutcome:
    body = response.body
    size_bytes = len(body) if isinstance(body, bytes) else 0
    ids = (value for name, value in response.headers if name == "x-ms-request-id")
    return PartOutcome(number, response.facts, response.status, size_bytes, next(ids, ""))


def _answered(request: PartRequest, response: Response) -> PartResponse:
    body = response.body
    assert isinstance(body, bytes)
    headers = response.headers
    if body:
        headers = [("Content-Length", str(len(body))), *headers]
    return PartResponse(response.status, tuple(headers), body, request.content_id, response.reason)
