"""Entity group transactions: the requests of one body, each checked like a single request, then run
as one transaction.

    read -> match -> place -> authorize -> decode     for every part
    run                                               once
    encode                                            for every part

Lives here: the one answer to all parts, and the part that an error names. Must not live here:
multipart itself (wire/core/multipart.py), what a part takes over from the batch (batches.py), which
parts may be combined (services/table/transactions.py). Source: "Performing entity group
transactions"; reference section 7.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from strongroom import limits
from strongroom.auth.request import Target as Signed
from strongroom.clock import guid
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.operations.core import codec
from strongroom.operations.core.spec import Operation, Origin, Resource
from strongroom.operations.table import entity_fields as fields
from strongroom.semantics.table import entities
from strongroom.servers.requests.admission import ParsedRequest, ServiceContext, admit
from strongroom.servers.requests.batches import BatchRequest, read_part, with_host
from strongroom.servers.requests.facts import PartOutcome, refusal_of
from strongroom.services.core.calls import Call
from strongroom.services.table.entities import PartFailed, WriteEntity
from strongroom.wire.core import multipart
from strongroom.wire.core.http import Response
from strongroom.wire.core.multipart import Batch, PartRequest, PartResponse
from strongroom.wire.core.query import Query

Run = Callable[[ServiceContext, Operation, Call[Any], Query], Awaitable[Any]]
"""Runs an admitted call: run(context, operation, call, query) returns its result."""

TOO_MANY: Final = "The batch request operation exceeds the maximum 100 changes per change set."
_QUERIES: Final = (Resource.TABLE, Resource.ENTITY)


class _Part(msgspec.Struct, frozen=True):
    parsed: ParsedRequest
    request: PartRequest
    operation: Operation
    call: Call[Any]
    origin: Origin


_AnsweredPart = tuple[_Part, PartResponse]


async def answer(batch: BatchRequest, run: Run) -> Response:
    """Always 202, with the answers to the parts, or the refusal of one.

    Raises: what `run` raises, except for refusals of parts.
    """
    batch_input: Batch = batch.call.input
    clock = batch.context.clock
    try:
        if batch_input.is_changeset:
            parts = await _changes(batch, batch_input.requests, run)
        else:
            parts = [await _query(batch, batch_input.requests[0], run)]
    except PartFailed as failed:
        responses = [_refused(batch, failed)]
    else:
        responses = [response for _, response in parts]
        batch.parsed.outcome = tuple(
            PartOutcome(number, part.parsed, response.status, len(response.body))
            for number, (part, response) in enumerate(parts, 1)
        )
    # Random boundaries, so that no content of an answer can contain one.
    batch_id, changeset_id = guid(clock), guid(clock)
    written = multipart.write(responses, batch_input.is_changeset, batch_id, changeset_id)
    content_type, body = await batch.context.services.turns.run(written)
    return Response(202, [("Content-Type", content_type)], body, len(body))


async def _changes(
    batch: BatchRequest, requests: tuple[PartRequest, ...], run: Run
) -> list[_AnsweredPart]:
    most = limits.BATCH_OPERATIONS_MAX
    if len(requests) > most:
        raise PartFailed(most - 1, StorageError(errors.INVALID_INPUT, TOO_MANY))
    parts = list[_Part]()
    for index, request in enumerate(requests):
        parts.append(await _admitted(batch, index, request))
        await batch.context.services.turns.pause()
    for index, part in enumerate(parts):
        if not isinstance(part.call.input, WriteEntity):
            raise PartFailed(index, entities.invalid("A change set holds writes of entities only."))
    outer: Call[Any] = batch.call
    call = msgspec.structs.replace(outer, input=[part.call for part in parts])
    try:
        results = await run(batch.context, batch.operation, call, batch.parsed.query)
    except PartFailed as failed:
        _check_declared(batch, parts[failed.index].operation, failed.error)
        raise
    pairs = zip(parts, results, strict=True)
    return [(part, await _answered(batch, part, result)) for part, result in pairs]


def _check_declared(batch: BatchRequest, operation: Operation, error: StorageError) -> None:
    """Check, in strict mode, that the operation declares the error, as for a single request."""
    declares = batch.context.endpoint.declares
    declared = declares(operation, error.row) or declares(batch.operation, error.row)
    if batch.context.strict and not declared:
        raise AssertionError(f"{operation.name} does not declare {error.row.code}") from error


async def _query(batch: BatchRequest, request: PartRequest, run: Run) -> _AnsweredPart:
    part = await _admitted(batch, 0, request)
    operation = part.operation
    if operation.writes() or operation.resource not in _QUERIES or operation.comp is not None:
        raise PartFailed(0, entities.invalid("Outside of a change set only queries are taken."))
    try:
        result = await run(batch.context, operation, part.call, batch.parsed.query)
    except StorageError as error:
        raise PartFailed(0, error) from None
    return part, await _answered(batch, part, result)


async def _admitted(batch: BatchRequest, index: int, request: PartRequest) -> _Part:
    """Return a part, authorized by itself with the credentials of the batch, and decoded."""
    try:
        # A table's name contains no slash, so a URL that begins with an account's name means the
        # account.
        parsed = read_part(batch, request, _headers(batch, request), lambda _: True)
        parsed.signed = _as_signed(parsed.signed, batch.parsed.signed)
        parsed.claim = batch.claim
        operation, call = await admit(batch.context, parsed, batch.claim)
    except StorageError as error:
        raise PartFailed(index, error) from None
    outer = batch.origin
    origin = Origin(parsed.query, parsed.request.headers, outer.host, outer.tls, outer.target)
    return _Part(parsed, request, operation, call, origin)


def _as_signed(part: Signed, batch_signed: Signed) -> Signed:
    """With the table's name in the case that the SAS uses, since that case has no meaning."""
    if part.container is None or batch_signed.container is None:
        return part
    if part.container.lower() != batch_signed.container.lower():
        return part
    return msgspec.structs.replace(part, container=batch_signed.container)


def _headers(batch: BatchRequest, part: PartRequest) -> list[tuple[str, str]]:
    """A part without a version header takes the version of the batch."""
    headers = with_host(part, batch.parsed.request.headers)
    if all(name.lower() != "x-ms-version" for name, _ in headers):
        headers.append(("x-ms-version", batch.call.caller.version))
    return headers


async def _answered(batch: BatchRequest, part: _Part, result: Any) -> PartResponse:
    encoded = codec.encode(part.operation, result, part.call, part.origin)
    response = await codec.complete(encoded, batch.context.services.turns)
    assert isinstance(response.body, bytes)
    headers = (*batch.context.endpoint.always, *response.headers)
    return PartResponse(response.status, headers, response.body, part.request.content_id)


def _refused(batch: BatchRequest, failed: PartFailed) -> PartResponse:
    """It stands for all parts. In a change set, its text begins with the number of the part."""
    context, error = batch.context, failed.error
    refusal = refusal_of(error)
    if batch.call.input.is_changeset:
        error = StorageError(error.row, f"{failed.index}:{error.message}", error.extras)
    rendered = context.endpoint.refusal(error, batch.request_id, context.clock.wall_ticks(), None)
    headers = (
        *_preference(batch.call.input.requests[failed.index]),
        *context.endpoint.always,
        ("Content-Type", rendered.content_type),
        *failed.error.headers,
    )
    status, body = error.row.status, rendered.body
    batch.parsed.outcome = (PartOutcome(failed.index + 1, refusal, status, len(body)),)
    return PartResponse(status, headers, body)


def _preference(part: PartRequest) -> multipart.Fields:
    """Return the Preference-Applied header, which the refusal of an insert has too."""
    preference = next((value for name, value in part.headers if name.lower() == "prefer"), "")
    applied = preference.strip().lower()
    is_kept = part.method == "POST" and applied in fields.PREFERENCES
    return (("Preference-Applied", applied),) if is_kept else ()
