"""The records of an HTTP exchange: one for the request, and one for each part of a batch.

Lives here: the one place that makes a record of a request and its answer, whichever way the answer
was made. Must not live here: the form of a line (record.py), when it is written (log.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus
from pathlib import PurePath
from types import CodeType
from typing import Final, NamedTuple

import msgspec

from strongroom.auth.request import Service
from strongroom.limits import KIB
from strongroom.operations.core.spec import Operation
from strongroom.servers.access_log.identities import (
    ANONYMOUS,
    OAUTH,
    SAS_KEY,
    identity_key,
    identity_of,
)
from strongroom.servers.access_log.places import Places, ShownPlace
from strongroom.servers.access_log.record import (
    AccessRecord,
    IdentityField,
    Properties,
    json_of,
    line_of,
)
from strongroom.servers.access_log.templates import Template, filled, template_of
from strongroom.servers.access_log.texts import shown
from strongroom.servers.http.settings import Exchange
from strongroom.servers.requests.admission import ParsedRequest
from strongroom.servers.requests.facts import PartOutcome, Refusal
from strongroom.values import TICKS_PER_S, iso7
from strongroom.wire.core.http import Request, Response

READ: Final = "StorageRead"
WRITE: Final = "StorageWrite"
DELETE: Final = "StorageDelete"
_READING: Final = ("GET", "HEAD", "OPTIONS")
_DELETING: Final = ("Delete", "Clear")
_UNKNOWN: Final = "Unknown"
_SUCCESS: Final = {
    SAS_KEY: "SASSuccess",
    OAUTH: "OAuthSuccess",
    ANONYMOUS.type: "AnonymousSuccess",
}
# Azure's documentation names this one in the plural.
_SERVICE_TYPES: Final = {
    service: "files" if service is Service.FILE else service.value for service in Service
}
_PACKAGE: Final = "strongroom"
_US_PER_S: Final = 1_000_000
_TEMPLATES_MAX: Final = 1024
_TEMPLATE_CHARS_MAX: Final = 4 * KIB
# Neither escaped in JSON, nor a signature: a client's usual id, and the usual ETag.
_PLAIN_ID: Final = re.compile(r"[0-9A-Za-z-]{1,64}")
_PLAIN_ETAG: Final = re.compile(r'"[0-9A-Za-z]{1,64}"')
_NOWHERE: Final = ShownPlace("")


class _Seen(NamedTuple):
    """What is known of an exchange beside itself."""

    parsed: ParsedRequest | None
    refusal: Refusal | None
    listener: str
    ended: int
    engine_s: float


class ExchangeRecords:
    def __init__(self, places: Places) -> None:
        self._places = places
        self._templates: dict[tuple[object, ...], Template] = {}

    def lines(
        self, exchange: Exchange, listener: str, ended: int, engine_s: float
    ) -> Sequence[bytes]:
        line = self._usual(exchange, listener, ended, engine_s)
        if line is not None:
            return (line,)
        return [line_of(record) for record in self.of(exchange, listener, ended, engine_s)]

    def _usual(
        self, exchange: Exchange, listener: str, ended: int, engine_s: float
    ) -> bytes | None:
        """By a template, for a request that succeeded and has no parts; None for any other."""
        request, response = exchange.request, exchange.response
        if request is None or response is None or not exchange.complete:
            return None
        parsed = response.facts
        if type(parsed) is not ParsedRequest or parsed.outcome is not None:
            return None
        addressed, operation, fields = parsed.addressed, parsed.operation, request.headers.get
        if operation is None:
            return None
        answered, seconds, head_bytes = (
            dict(response.headers),
            exchange.seconds,
            exchange.head_bytes,
        )
        etag, client = answered.get("ETag", ""), fields("x-ms-client-request-id") or ""
        # All that the line's other fields follow from.
        kind = (
            listener,
            addressed.target.account,
            parsed.signed.service,
            operation.name,
            parsed.version,
            fields("x-ms-version"),
            exchange.status,
            identity_key(parsed.claim, request),
            request.tls,
            fields("user-agent"),
            fields("referer"),
            exchange.peer,
            not etag,
            not client,
        )
        template = self._templates.get(kind)
        if template is None:
            template = self._new_template(kind, exchange, listener, ended, engine_s)
        uri, key = self._places.in_json(request, addressed)
        return filled(
            template,
            (
                iso7(ended - int(seconds * TICKS_PER_S)),
                int(seconds * _US_PER_S) / 1000,
                answered.get("x-ms-request-id", ""),
                uri,
                key,
                _etag_in_json(etag) if etag else "",
                _id_in_json(client) if client else "",
                int(engine_s * _US_PER_S) / 1000,
                exchange.bytes_in,
                head_bytes,
                exchange.bytes_out - head_bytes,
            ),
        )

    def _new_template(
        self,
        kind: tuple[object, ...],
        exchange: Exchange,
        listener: str,
        ended: int,
        engine_s: float,
    ) -> Template:
        (record,) = self.of(exchange, listener, ended, engine_s)
        template = template_of(record)
        if sum(map(len, template)) <= _TEMPLATE_CHARS_MAX:
            if len(self._templates) >= _TEMPLATES_MAX:
                self._templates.clear()
            self._templates[kind] = template
        return template

    def of(
        self, exchange: Exchange, listener: str, ended: int, engine_s: float
    ) -> list[AccessRecord]:
        """The record of an exchange, then those of its parts.

        `ended` is wall time in ticks, `engine_s` how long the request waited for the engine.
        """
        response = exchange.response
        parsed, outcome = _facts_of(None if response is None else response.facts)
        refusal = outcome if isinstance(outcome, Refusal) else None
        seen = _Seen(parsed, refusal, listener, ended, engine_s)
        whole = self._whole(exchange, seen)
        if isinstance(outcome, tuple):
            return [whole, *(self._part(whole, part) for part in outcome)]
        return [whole]

    def _whole(self, exchange: Exchange, seen: _Seen) -> AccessRecord:
        parsed, refusal, listener, ended, engine_s = seen
        request, response, seconds = exchange.request, exchange.response, exchange.seconds
        answered = {} if response is None else dict(response.headers)
        identity = identity_of(None if parsed is None else parsed.claim, request)
        operation, category = _operation(parsed, request, response)
        place = _NOWHERE
        if request is not None:
            place = self._places.of(request, None if parsed is None else parsed.addressed)
        return AccessRecord(
            time=iso7(ended - int(seconds * TICKS_PER_S)),
            category=category,
            operation_name=operation,
            operation_version=_version(parsed, request),
            status_code=exchange.status,
            status_text=_status_text(exchange.status, refusal, identity),
            duration_ms=int(seconds * _US_PER_S) / 1000,
            caller_ip_address=exchange.peer,
            correlation_id=answered.get("x-ms-request-id", ""),
            protocol="HTTPS" if request is not None and request.tls else "HTTP",
            uri=place.uri,
            identity=identity,
            properties=Properties(
                account_name="" if parsed is None else shown(parsed.addressed.target.account),
                service_type="" if parsed is None else _SERVICE_TYPES[parsed.signed.service],
                listener=listener,
                object_key=place.object_key,
                etag=answered.get("ETag", ""),
                user_agent_header=_header(request, "user-agent"),
                referrer_header=_header(request, "referer"),
                client_request_id=_header(request, "x-ms-client-request-id"),
                engine_ms=int(engine_s * _US_PER_S) / 1000,
                request_body_size=exchange.bytes_in,
                response_header_size=exchange.head_bytes,
                response_body_size=max(0, exchange.bytes_out - exchange.head_bytes),
                refused_by="" if refusal is None else _refused_by(refusal, request),
                interrupted=not exchange.complete,
            ),
        )

    def _part(self, whole: AccessRecord, part: PartOutcome) -> AccessRecord:
        """What a part does not have of its own is the batch's."""
        parsed, outcome = _facts_of(part.facts)
        refusal = outcome if isinstance(outcome, Refusal) else None
        request = None if parsed is None else parsed.request
        identity = identity_of(None if parsed is None else parsed.claim, request)
        operation, category = _operation(parsed, request, None)
        place = ShownPlace(whole.uri)
        if request is not None and parsed is not None:
            place = self._places.of(request, parsed.addressed)
        size_bytes = None if request is None else request.body.size_bytes
        return msgspec.structs.replace(
            whole,
            category=category,
            operation_name=operation,
            status_code=part.status,
            status_text=_status_text(part.status, refusal, identity),
            uri=place.uri,
            identity=identity,
            properties=Properties(
                whole.properties.account_name,
                whole.properties.service_type,
                whole.properties.listener,
                place.object_key,
                client_request_id=_header(request, "x-ms-client-request-id"),
                operation_count=part.number,
                part_request_id=part.request_id,
                refused_by="" if refusal is None else _refused_by(refusal, request),
                request_body_size=size_bytes,
                response_body_size=part.bytes_out,
            ),
        )


def _etag_in_json(etag: str) -> str:
    return f'"\\"{etag[1:-1]}\\""' if _PLAIN_ETAG.fullmatch(etag) else json_of(etag)


def _id_in_json(client_id: str) -> str:
    return f'"{client_id}"' if _PLAIN_ID.fullmatch(client_id) else json_of(shown(client_id))


def _facts_of(
    facts: object,
) -> tuple[ParsedRequest | None, Refusal | tuple[PartOutcome, ...] | None]:
    """Return what is known of a request, and its outcome, from the facts of its answer."""
    if isinstance(facts, ParsedRequest):
        return facts, facts.outcome
    if isinstance(facts, Refusal):
        return None, facts
    if isinstance(facts, tuple):  # of an answer, and of the refusal that was sent in its place
        replaced, sent = map(_facts_of, facts)
        return replaced[0], sent[1]
    return None, None


def _operation(
    parsed: ParsedRequest | None, request: Request | None, response: Response | None
) -> tuple[str, str]:
    """Return the name of the operation, and its category."""
    operation = None if parsed is None else parsed.operation
    if operation is not None:
        known = _OPERATIONS.get(operation.name)
        if known is None:
            # There are no more names than declarations.
            known = _OPERATIONS[operation.name] = _of_operation(operation)
        return known
    named = "" if response is None else response.operation
    method = "" if request is None else request.method
    category = READ if method in _READING else DELETE if method == "DELETE" else WRITE
    return _joined(named) if named else _UNKNOWN, category


_OPERATIONS: Final[dict[str, tuple[str, str]]] = {}


def _of_operation(operation: Operation) -> tuple[str, str]:
    name, writes = operation.name, operation.writes()
    kind = WRITE if writes else READ
    return _joined(name), DELETE if writes and name.startswith(_DELETING) else kind


def _joined(name: str) -> str:
    """Return `PutBlob` for `Put Blob`. Variants of an operation, in brackets, share its name."""
    words = name.partition(" (")[0].split()
    return "".join(word[:1].upper() + word[1:] for word in words)


def _status_text(status: int, refusal: Refusal | None, identity: IdentityField) -> str:
    if refusal is not None:
        return refusal.row.code
    if status < HTTPStatus.BAD_REQUEST:
        return _SUCCESS.get(identity.type, "Success")
    try:
        return _joined(HTTPStatus(status).phrase.title())
    except ValueError:
        return _UNKNOWN


def _refused_by(refusal: Refusal, request: Request | None) -> str:
    if refusal.rule is None:
        return "connection" if request is None else _UNKNOWN
    return rule_name(refusal.rule)


@lru_cache(maxsize=1024)
def rule_name(code: CodeType) -> str:
    """Return the name of a function of the package: `auth.shared_key.verify`."""
    parts = PurePath(code.co_filename).with_suffix("").parts
    if _PACKAGE in parts:
        parts = parts[len(parts) - parts[::-1].index(_PACKAGE) :]
    return ".".join((*parts, code.co_qualname.replace(".<locals>", "")))


def _version(parsed: ParsedRequest | None, request: Request | None) -> str:
    if parsed is not None and parsed.version is not None:
        return parsed.version
    return _header(request, "x-ms-version")


def _header(request: Request | None, name: str) -> str:
    value = None if request is None else request.headers.get(name)
    return "" if value is None else shown(value)
