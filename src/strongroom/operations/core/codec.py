"""The codec of all operations: makes a call from a request, and a response from a result.

It reads the fields of a declaration and writes its answer. Source: reference section 1 of
limits-and-errors (headers of every response).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any, Final

import msgspec

from strongroom.auth.authorize import Grant
from strongroom.auth.claims import BearerClaim
from strongroom.auth.request import Service
from strongroom.errors import core as errors
from strongroom.errors.core import (
    StorageError,
    invalid_header,
    invalid_query,
    missing_header,
    not_served,
)
from strongroom.operations.core import fields
from strongroom.operations.core.endpoint import ResourceAddress
from strongroom.operations.core.spec import Defaults, Operation, Origin
from strongroom.semantics.core import conditions as conditional
from strongroom.semantics.core.conditions import NONE, Conditions
from strongroom.services.core.calls import (
    NO_TERMS,
    Call,
    Caller,
    CallTarget,
    ConditionUse,
    Place,
    Reauthorize,
    Terms,
)
from strongroom.services.core.container_conditions import CONTAINER_CONDITIONS
from strongroom.slices import SliceTurns, joined
from strongroom.values import ACCOUNT_SCOPE
from strongroom.wire.core import headers as wire
from strongroom.wire.core.http import Request, Response
from strongroom.wire.core.query import Query

# The headers that a request may send to every operation.
_CONDITIONS: Final = (*fields.CONDITION_HEADERS, *fields.BLOB_CONDITION_HEADERS)
_HEADERS: Final = frozenset(
    (
        *_CONDITIONS,
        fields.LEASE_ID_HEADER,
        fields.WAIT_HEADER,
        fields.STRUCTURED_BODY,
        fields.SCOPE_HEADER,
    )
)
_SNAPSHOT: Final = "snapshot"
_VERSION: Final = "versionid"
_TIMEOUT: Final = "timeout"
# Reading a longer document takes a millisecond, even if it is refused.
_LONG_DOCUMENT_BYTES: Final = 256 * 1024
_LONGEST: Final = (1 << 63) - 1
# The parameter that names a snapshot: of a share in the File service.
_SHARE_SNAPSHOT: Final = "sharesnapshot"
_PARAMETERS: Final = frozenset((_SNAPSHOT, _SHARE_SNAPSHOT, _VERSION, _TIMEOUT))


class Admitted(msgspec.Struct, frozen=True):
    """An admitted request: the resource that it names, its grant, and how to judge it again."""

    service: Service
    addressed: ResourceAddress
    place: Place | None
    grant: Grant
    authorize: Callable[[], Reauthorize]
    version: str
    owner: bool = False
    bearer: BearerClaim | None = None


async def decode(
    operation: Operation,
    request: Request,
    query: Query,
    admitted: Admitted,
    turns: SliceTurns,
) -> Call[Any]:
    """The typed call of a request. `turns` are those in which a long document is read."""
    target = admitted.addressed.target
    if operation.body is not None and operation.body.parse is None:
        _check_length(request)
    terms, snapshot, version = NO_TERMS, None, None
    # A fast path: nearly all requests send none of these headers and parameters.
    scope = admitted.grant.scope
    if scope or not (request.headers.has_none_of(_HEADERS) and query.has_none_of(_PARAMETERS)):
        terms = _terms(operation, request, query, admitted.version, scope)
        _take_structured(operation, request)
        snapshot, version = _states(operation, query, admitted.service)
        _check_timeout(query)
    defaults = operation.defaults
    if defaults is not None and not (
        request.headers.has_none_of(defaults.headers) and query.has_none_of(defaults.query)
    ):
        defaults = None
    given = None if defaults is None else defaults.input
    if given is None:
        given = await _input(operation, request, query, defaults, turns)
    named = CallTarget(
        admitted.service,
        target.account,
        target.container or "",
        target.blob or "",
        snapshot,
        admitted.addressed.entity,
        target.secondary,
        version,
    )
    caller = Caller(
        admitted.authorize, admitted.grant, admitted.version, admitted.owner, admitted.bearer
    )
    return Call(operation.rule, named, admitted.place, caller, terms, request, given)


async def _input(
    operation: Operation,
    request: Request,
    query: Query,
    defaults: Defaults | None,
    turns: SliceTurns,
) -> Any:
    """The operation's input, made from its own fields, which may all be absent, and its
    document."""
    if defaults is not None:
        values = dict(defaults.values)
    else:
        values = {field.name: field.read(request, query) for field in operation.accepts}
        values.pop("", None)
    body = operation.body
    if body is not None and body.parse is not None:
        data = await request.body.read_all(body.max_bytes)
        if len(data) > _LONG_DOCUMENT_BYTES:
            await turns.pause()
        value = body.parse(data)
        values[body.name] = await turns.run(value) if _is_in_steps(value) else value
        if body.receipt is not None:
            value = body.receipt(data)
            values["received"] = await turns.run(value) if _is_in_steps(value) else value
    made = operation.input(**values)
    return await turns.run(made) if _is_in_steps(made) else made


def _is_in_steps(made: Any) -> bool:
    """Whether a reader makes its value in steps, as it does from a long document."""
    # Not the abstract class: its check is a Python call for each request.
    return isinstance(made, GeneratorType)


def _check_length(request: Request) -> None:
    if "content-length" not in request.headers and "transfer-encoding" not in request.headers:
        raise StorageError(errors.MISSING_CONTENT_LENGTH_HEADER)


def _take_structured(operation: Operation, request: Request) -> None:
    """Replace the body of a structured message by its content."""
    value = request.headers.get(fields.STRUCTURED_BODY)
    if value is None or any(fields.STRUCTURED_BODY in one.headers for one in operation.accepts):
        return
    if operation.body is None or operation.body.unframe is None:
        raise not_served(f"The header {fields.STRUCTURED_BODY} with {operation.name}")
    fields.is_structured(fields.STRUCTURED_BODY, value)
    length = request.headers.get(fields.STRUCTURED_LENGTH)
    if length is None:
        raise missing_header(fields.STRUCTURED_LENGTH)
    content_bytes = wire.integer(fields.STRUCTURED_LENGTH, length, 0, _LONGEST)
    request.body = operation.body.unframe(request.body, content_bytes)


def _terms(
    operation: Operation, request: Request, query: Query, version: str, token_scope: str
) -> Terms:
    """The conditions, the lease id, the wait and the encryption scope of a request. Only headers
    that were sent are read: most requests that send any of them send one.

    Arguments:
        token_scope: the encryption scope that the caller's token names; "" = none.
    """
    sent = request.headers.get
    wait_s = 0
    if sent(fields.WAIT_HEADER) is not None:
        wait_s = fields.wait_s(request, operation.waits)
    conditions = NONE
    if not request.headers.has_none_of(_CONDITIONS):
        conditions = _conditions(operation, request, version, wait_s)
    lease_id = None
    if sent(fields.LEASE_ID_HEADER) is not None:
        lease_id = fields.lease_id(request)
    scope = None
    if token_scope or sent(fields.SCOPE_HEADER) is not None:
        scope = _scope(operation, request, query, token_scope)
    return Terms(conditions, lease_id, wait_s, scope)


def _scope(operation: Operation, request: Request, query: Query, token_scope: str) -> str | None:
    """The encryption scope that the request or its token names, which may not be two; None if the
    operation takes none."""
    for field in operation.accepts:
        if fields.SCOPE_HEADER in field.headers:
            sent: str | None = field.read(request, query)
            if not token_scope:
                return sent
            signed = "" if token_scope == ACCOUNT_SCOPE else token_scope
            if sent is not None and sent != signed:
                reason = "The shared access signature names another encryption scope (ses)."
                raise invalid_header(fields.SCOPE_HEADER, sent, reason)
            return signed
    return None


def _check_timeout(query: Query) -> None:
    text = query.get(_TIMEOUT)
    if text is not None and not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
        raise invalid_query(_TIMEOUT, text, "It must be a positive whole number of seconds.")


def _states(operation: Operation, query: Query, service: Service) -> tuple[int | None, int | None]:
    """The snapshot and the version that the query names, of which there is at most one."""
    named_by = _SHARE_SNAPSHOT if service is Service.FILE else _SNAPSHOT
    snapshot = _state(operation.snapshots, query, named_by)
    version = _state(operation.versions, query, _VERSION)
    if snapshot is not None and version is not None:
        sent = query.get(_VERSION) or ""
        raise invalid_query(_VERSION, sent, "Not allowed together with snapshot.")
    return snapshot, version


def _state(read: Callable[[str], int] | None, query: Query, name: str) -> int | None:
    """The snapshot or version that the URL names; if `read` is None, it may not name one."""
    text = query.get(name)
    if text is None:
        return None
    if read is None:
        kind = "versions" if name == _VERSION else "snapshots"
        raise invalid_query(name, text, f"The operation does not act on {kind}.")
    return read(text)


def _conditions(operation: Operation, request: Request, version: str, wait_s: int) -> Conditions:
    """Refuse a combination of conditions that the operation does not take."""
    use = operation.rule.conditions
    if use in (ConditionUse.BLOB_READ, ConditionUse.BLOB_WRITE):
        sent = fields.blob_conditions(request)
    else:
        sent = NONE if use is ConditionUse.IGNORED else fields.conditions(request)
    if sent is NONE:
        return sent
    reads = (ConditionUse.READ, ConditionUse.BLOB_READ)
    if use in reads or (wait_s and use is ConditionUse.REFUSED):
        conditional.require_read_combination(sent, version)
    elif use in (ConditionUse.WRITE, ConditionUse.BLOB_WRITE):
        conditional.require_write_combination(sent)
    elif use is ConditionUse.TAGS:
        if sent != Conditions(if_tags=sent.if_tags):
            raise StorageError(errors.CONDITION_HEADERS_NOT_SUPPORTED)
    elif use is ConditionUse.UNMODIFIED_SINCE:
        if sent != Conditions(if_unmodified_since=sent.if_unmodified_since):
            raise StorageError(errors.CONDITION_HEADERS_NOT_SUPPORTED)
    else:
        accepted = CONTAINER_CONDITIONS[use]
        conditional.require_container_conditions(sent, accepted)
    return sent


def encode(operation: Operation, result: Any, call: Call[Any], origin: Origin) -> Response:
    """The pipeline adds the headers of every response."""
    success = operation.success
    status = success if isinstance(success, int) else success(result)
    headers: list[tuple[str, str]] = []
    for returned in operation.returns:
        value = returned.of(result)
        if value is not None:
            headers.append((returned.header, value))
    if operation.extra_headers is not None:
        headers.extend(operation.extra_headers(result))
    if operation.request_dependent_headers is not None:
        headers.extend(operation.request_dependent_headers(result, call, origin))
    if scope := _written_scope(operation, call):
        headers.append((fields.SCOPE_HEADER, scope))
    if operation.content is None:
        return Response(status, headers)
    content = operation.content(result, call, origin)
    return Response(status, headers, content.pieces, content.size_bytes, finished=content.release)


def _written_scope(operation: Operation, call: Call[Any]) -> str:
    """The encryption scope that a write names, else the default one of its container; "" = the
    account's own, or no write."""
    if call.terms.scope is not None:
        return call.terms.scope
    default = "" if call.place is None else call.place.scope
    if default and any(fields.SCOPE_HEADER in field.headers for field in operation.accepts):
        return default
    return ""


async def complete(response: Response, turns: SliceTurns) -> Response:
    """The response, after a body that is made piece by piece is complete."""
    pieces: object = response.body
    if isinstance(pieces, Iterator):
        response.body = whole = await turns.run(joined(pieces))
        response.size_bytes = len(whole)
    return response
