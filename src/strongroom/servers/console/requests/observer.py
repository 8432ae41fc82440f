"""The observer that keeps requests for the console. It runs for each request, so it is short.

Lives here: what is taken of an ended request. Must not live here: the rings and their bounds
(kept.py), anything that only a reader needs. A few small requests are held for a moment. Afterwards
it refers to no request, body or answer. Messages of SMB are not kept. What they would need is
collected for the access log only, and costs more than the rest of a small message.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from strongroom.auth.bearer import bearer_text
from strongroom.auth.claims import Anonymous, BearerClaim, Claim, SasClaim, SharedKeyClaim
from strongroom.auth.sas import is_sas
from strongroom.limits import KIB
from strongroom.servers.console.requests.kept import (
    BETWEEN_HEADS,
    BETWEEN_HEADS_TLS,
    HEADS_BYTES_MAX,
    PACKED_BYTES_MAX,
    KeptRequests,
    RefusalNote,
    encode_short,
    joined,
    packed,
)
from strongroom.servers.http.settings import Exchange
from strongroom.servers.requests.admission import ParsedRequest
from strongroom.servers.requests.facts import Refusal
from strongroom.wire.core.http import Request, Response

CONSOLE: Final = "console"
"""The name of the console's listener."""
DATA_PATHS: Final = ("/blob/", "/queue/", "/table/", "/file/")
"""The beginnings of the paths that are data on the console's port."""
UNREADABLE: Final = "unreadable"
_KEYS: Final = ("", "key1", "key2")
_SAS: Final = "SAS"
_REFUSED_FROM: Final = 400
# Several requests are kept one after the other, while the code and its data are in the processor's
# caches. So few are held that no large body is among them, and that a reader hardly waits.
_HELD_MAX: Final = 16
_HELD_BYTES_MAX: Final = 16 * KIB
_HELD_S: Final = 0.05
_log = logging.getLogger(__name__)
_NO_SERVICE: Final = ""


class RequestTail:
    """Keeps the requests of all listeners over HTTP (see ExchangeObserver).

    Arguments:
        now: wall time in ticks.
        call_later: arranges a call in some seconds, on the event loop.
    """

    def __init__(
        self,
        kept: KeptRequests,
        now: Callable[[], int],
        call_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._kept = kept
        self._now = now
        self._call_later = call_later
        self._held: list[Exchange] = []
        self._is_due = False  # whether a call is arranged that empties the list
        self._observe_usual = self._quickly()
        kept.catch_up = self.keep_held

    def of_listener(self, name: str) -> Callable[[Exchange], None]:
        """On the console's port only requests for data are kept."""
        if name == CONSOLE:
            return self._observe_console
        held, keep_held = self._held, self.keep_held

        def hold(exchange: Exchange) -> None:
            held.append(exchange)
            is_large = exchange.bytes_in + exchange.bytes_out > _HELD_BYTES_MAX
            if is_large or len(held) >= _HELD_MAX:
                keep_held()
            elif not self._is_due:
                self._is_due = True
                self._call_later(_HELD_S, self._keep_due)

        return hold

    def keep_held(self) -> None:
        """Keep the requests that are held. Readers call it first."""
        observe = self._observe_usual
        for exchange in self._held:
            try:
                observe(exchange)
            except Exception:
                _log.exception("a request could not be kept for the console")
        self._held.clear()

    def _keep_due(self) -> None:
        self._is_due = False
        self.keep_held()

    def _observe_console(self, exchange: Exchange) -> None:
        request = exchange.request
        if request is not None and request.path.startswith(DATA_PATHS):
            self.keep_held()
            self._observe(exchange, through_console=True)

    def _quickly(self) -> Callable[[Exchange], None]:
        """Return a function that keeps usual requests without further calls, and passes on others.

        Usual is one that was not refused, and has a key's or a SAS's proof. Each call would add a
        tenth to what the tail costs.
        """
        add, observe_slowly, encode = self._kept.add, self._observe, encode_short

        def observe(exchange: Exchange) -> None:
            response, status = exchange.response, exchange.status
            if response is None or status >= _REFUSED_FROM:
                return observe_slowly(exchange)
            parsed = response.facts
            if type(parsed) is not ParsedRequest:
                return observe_slowly(exchange)
            claim = parsed.claim
            if type(claim) is SharedKeyClaim:
                who = _KEYS[claim.key]
            elif type(claim) is SasClaim and not claim.sas.si:
                who = _SAS
            else:
                return observe_slowly(exchange)
            request, target = parsed.request, parsed.addressed.target
            short = encode(
                (
                    parsed.authenticated_at,
                    exchange.seconds,
                    status,
                    request.method,
                    response.operation,
                    parsed.signed.service.letter,
                    target.account,
                    target.container,
                    request.path,
                    who,
                    "",
                    False,
                )
            )
            between = BETWEEN_HEADS_TLS if request.tls else BETWEEN_HEADS
            heads = exchange.request_head + between + exchange.answer_head
            if len(short) > PACKED_BYTES_MAX or len(heads) > HEADS_BYTES_MAX:
                return observe_slowly(exchange)
            return add(short, heads)

        return observe

    def _observe(self, exchange: Exchange, through_console: bool = False) -> None:
        request, response, status = exchange.request, exchange.response, exchange.status
        if request is None or response is None:
            self._observe_unreadable(exchange)
            return
        parsed = _parsed_of(response.facts)
        is_refused = status >= _REFUSED_FROM
        if parsed is None:
            began, service, account, container = 0, _NO_SERVICE, "", None
            who = _unverified(request)
        else:
            target, claim, began = parsed.addressed.target, parsed.claim, parsed.authenticated_at
            service, account = parsed.signed.service.letter, target.account
            container, who = target.container, _who(claim, request)
        short = packed(
            (
                began or self._now(),
                exchange.seconds,
                status,
                request.method,
                response.operation,
                service,
                account,
                container,
                request.path,
                who,
                _code(response) if is_refused else "",
                through_console,
            )
        )
        heads = exchange.request_head, exchange.answer_head
        if is_refused:
            self._kept.add_refused(short, *heads, request.tls, _note(response))
        else:
            self._kept.add(short, joined(*heads, request.tls))

    def _observe_unreadable(self, exchange: Exchange) -> None:
        """Keep a refusal of bytes that are no request."""
        response = exchange.response
        code = "" if response is None else _code(response)
        note = None if response is None else _note(response)
        fields = (
            self._now(),
            0.0,
            exchange.status,
            "",
            UNREADABLE,
            "",
            "",
            "",
            "",
            code,
            "",
            False,
        )
        self._kept.add_refused(packed(fields), b"", exchange.answer_head, False, note)


def _parsed_of(facts: object) -> ParsedRequest | None:
    if isinstance(facts, ParsedRequest):
        return facts
    if isinstance(facts, tuple):  # of an answer, and of the refusal that was sent in its place
        return _parsed_of(facts[0])
    return None


def _refusal_of(facts: object) -> Refusal | None:
    if isinstance(facts, ParsedRequest):
        facts = facts.outcome
    elif isinstance(facts, tuple):
        return _refusal_of(facts[-1])
    return facts if isinstance(facts, Refusal) else None


def _code(response: Response) -> str:
    """Return the code of the error of a refusal; "" if it has none."""
    refusal = _refusal_of(response.facts)
    if refusal is not None:
        return refusal.row.code
    codes = (value for name, value in response.headers if name.lower() == "x-ms-error-code")
    return next(codes, "")


def _note(response: Response) -> RefusalNote | None:
    refusal = _refusal_of(response.facts)
    if refusal is None:
        return None
    texts = (refusal.message, *(f"{name}: {value}" for name, value in refusal.extras))
    return RefusalNote(refusal.rule, "\n".join(texts))


def _who(claim: Claim | None, request: Request) -> str:
    if isinstance(claim, SharedKeyClaim):
        return _KEYS[claim.key]
    if isinstance(claim, SasClaim):
        return f"{_SAS}, policy {claim.sas.si}" if claim.sas.si else _SAS
    if isinstance(claim, BearerClaim):
        return claim.identity.object_id
    if isinstance(claim, Anonymous):
        return "anonymous"
    return _unverified(request)


def _unverified(request: Request) -> str:
    """Return the kind of credentials that a request carries, whose check failed or never began."""
    authorization = request.headers.get("authorization")
    if authorization is not None:
        return "unverified token" if bearer_text(authorization) is not None else "unverified key"
    return "unverified SAS" if request.query and is_sas(request.query) else "anonymous"
