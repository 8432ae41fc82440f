"""The records of an HTTP exchange: one for the request, and one for each part of a batch.

Lives here: the one place that makes a record of a request and its answer, whichever way the answer
was made. Must not live here: the form of a line (record.py), when it is written (log.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from http import HTTPStatus
from pathlib import PurePath
from types import CodeType
from typing import Final

import msgspec

from strongroom.auth.request import Service
from strongroom.servers.access_log.identities import ANONYMOUS, OAUTH, SAS_KEY, identity_of
from strongroom.servers.access_log.places import Place, Places
from strongroom.servers.access_log.record import AccessRecord, IdentityField, Properties
from strongroom.servers.access_log.texts import cut
from strongroom.servers.http.settings import Exchange
from strongroom.servers.requests.admission import ParsedRequest
from strongroom.servers.requests.facts import Part, Refusal
from strongroom.values import TICKS_PER_S, iso7
from strongroom.wire.core.http import Request

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


class _Facts(msgspec.Struct):
    """What is known of a request or of a part."""

    parsed: ParsedRequest | None = None
    refusal: Refusal | None = None
    parts: tuple[Part, ...] = ()


class ExchangeRecords:
    """Makes the records of exchanges.

    Arguments:
        places: writes addresses.
        now: wall time in ticks.
        engine_s: returns how long the current request waited for the engine.
    """

    def __init__(
        self, places: Places, now: Callable[[], int], engine_s: Callable[[], float]
    ) -> None:
        self._places = places
        self._now = now
        self._engine_s = engine_s

    def of(self, exchange: Exchange, listener: str) -> Iterator[AccessRecord]:
        """Yield the record of an exchange, then those of its parts.

        Arguments:
            listener: the name of the port.
        """
        response = exchange.response
        facts = _facts_of(None if response is None else response.facts)
        whole = self._whole(exchange, facts, listener)
        yield whole
        for part in facts.parts:
            yield self._part(whole, part)

    def _whole(self, exchange: Exchange, facts: _Facts, listener: str) -> AccessRecord:
        request, response, parsed = exchange.request, exchange.response, facts.parsed
        answered = {} if response is None else dict(response.headers)
        identity = identity_of(None if parsed is None else parsed.claim, request)
        named = "" if response is None else response.operation
        operation, category = _operation(facts, request, named)
        place = Place("") if request is None else self._place(request, parsed)
        seconds = exchange.seconds
        scheme = "HTTPS" if request is not None and request.tls else "HTTP"
        return AccessRecord(
            iso7(self._now() - int(seconds * TICKS_PER_S)),
            category,
            operation,
            _version(parsed, request),
            exchange.status,
            _status_text(exchange.status, facts.refusal, identity),
            round(seconds * 1000, 3),
            exchange.peer,
            answered.get("x-ms-request-id", ""),
            scheme,
            place.uri,
            identity,
            Properties(
                _account(parsed),
                _service_type(parsed),
                listener,
                place.object_key,
                cut(answered.get("ETag", "")),
                _header(request, "user-agent"),
                _header(request, "referer"),
                _header(request, "x-ms-client-request-id"),
                refused_by=_refused_by(facts.refusal, request),
                engine_ms=round(self._engine_s() * 1000, 3),
                request_body_size=exchange.bytes_in,
                response_header_size=exchange.head_bytes,
                response_body_size=max(0, exchange.bytes_out - exchange.head_bytes),
                interrupted=not exchange.complete,
            ),
        )

    def _place(self, request: Request, parsed: ParsedRequest | None) -> Place:
        return self._places.of(request, None if parsed is None else parsed.addressed)

    def _part(self, whole: AccessRecord, part: Part) -> AccessRecord:
        """Return the record of a part: what it does not have of its own is the batch's."""
        facts = _facts_of(part.facts)
        parsed = facts.parsed
        request = None if parsed is None else parsed.request
        identity = identity_of(None if parsed is None else parsed.claim, request)
        operation, category = _operation(facts, request, "")
        place = Place(whole.uri) if request is None else self._place(request, parsed)
        size_bytes = None if request is None else request.body.size_bytes
        return msgspec.structs.replace(
            whole,
            category=category,
            operation_name=operation,
            status_code=part.status,
            status_text=_status_text(part.status, facts.refusal, identity),
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
                refused_by=_refused_by(facts.refusal, request),
                request_body_size=size_bytes,
                response_body_size=part.bytes_out,
            ),
        )


def _facts_of(given: object) -> _Facts:
    """Return the facts of a Response or a Part."""
    if isinstance(given, ParsedRequest):
        outcome = given.outcome
        if outcome is None:
            return _Facts(given)
        if isinstance(outcome, Refusal):
            return _Facts(given, outcome)
        return _Facts(given, None, outcome)
    if isinstance(given, Refusal):
        return _Facts(None, given)
    if isinstance(given, tuple):  # of an answer, and of the refusal that was sent in its place
        replaced, sent = map(_facts_of, given)
        return _Facts(replaced.parsed, sent.refusal, replaced.parts)
    return _Facts()


def _operation(facts: _Facts, request: Request | None, named: str) -> tuple[str, str]:
    """Return the name of the operation, and its category."""
    parsed = facts.parsed
    if parsed is not None and parsed.operation is not None:
        return _of_operation(parsed.operation.name, parsed.operation.writes())
    method = "" if request is None else request.method
    category = READ if method in _READING else DELETE if method == "DELETE" else WRITE
    return _joined(named) if named else _UNKNOWN, category


@lru_cache(maxsize=1024)
def _of_operation(name: str, writes: bool) -> tuple[str, str]:
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


def _refused_by(refusal: Refusal | None, request: Request | None) -> str:
    if refusal is None:
        return ""
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


def _account(parsed: ParsedRequest | None) -> str:
    return "" if parsed is None else cut(parsed.addressed.target.account)


def _service_type(parsed: ParsedRequest | None) -> str:
    return "" if parsed is None else _SERVICE_TYPES[parsed.signed.service]


def _header(request: Request | None, name: str) -> str:
    value = None if request is None else request.headers.get(name)
    return "" if value is None else cut(value)
