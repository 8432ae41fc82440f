"""The header of a forwarded request: what the first gateway knows of its client, with a proof.

Lives here: the header's form, the proof, and its check. Must not live here: what a gateway does
with an unproven request (receiving.py). Source: RFC 2104 (HMAC).

The proof is an HMAC with the secret of the store. It covers the header's content, the request's
first line, both gateways' runs and the certificate of the target. So it is worth nothing at another
gateway, nor at a later run of the same one, nor for another request.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

import msgspec

from strongroom.services.core.gateway_runs import GatewayRun
from strongroom.wire.core.http import Headers, Request

HEADER: Final = "x-strongroom-forwarded"
NOT_HERE: Final = "x-strongroom-not-here"
"""A header of a refusal: the share is not at the gateway that was asked, and nothing was done."""
_SECRET_BYTES_MIN: Final = 32
_PURPOSE: Final = b"strongroom forwarded request 1"
HEADER_CHARS_MAX: Final = 16 * 1024


class Hop(msgspec.Struct, frozen=True, array_like=True):
    """What is no part of the request, but of its way.

    Attributes:
        sender, target: the gateways.
        peer: the client's address, as the first gateway saw it.
        is_tls: whether the client came by https.
        mount: see Request.
        request_id: x-ms-request-id of the answer.
        has_host: whether the client sent a Host header.
        question: of the gateway itself (questions.py). Then there is no request of a client. It is
            in no field that a client could fill.
    """

    sender: GatewayRun
    target: GatewayRun
    peer: str
    is_tls: bool
    mount: str
    request_id: str
    has_host: bool
    question: bytes = b""


class Proofs:
    """Makes and checks the header.

    Arguments:
        secret: of the store.

    Raises: ValueError: the store has none. Anybody could make a proof with an empty one.
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) < _SECRET_BYTES_MIN:
            raise ValueError("the store has no secret by which its gateways could know each other")
        self._secret = secret

    def header(self, request: Request, hop: Hop, fingerprint: bytes) -> str:
        """`fingerprint` is that of the target's certificate."""
        content = base64.urlsafe_b64encode(msgspec.msgpack.encode(hop)).decode("ascii")
        return f"{content}.{self._proof(request, content, fingerprint)}"

    def proven(self, request: Request, own: GatewayRun, fingerprint: bytes) -> Hop | None:
        """Return the hop of a request that a gateway has sent to this one; None for any other
        request."""
        text = request.headers.get(HEADER)
        if text is None or HEADER in request.headers.repeats or len(text) > HEADER_CHARS_MAX:
            return None
        content, _, proof = text.partition(".")
        expected = self._proof(request, content, fingerprint).encode("ascii")
        if not hmac.compare_digest(proof.encode("latin-1"), expected):
            return None
        try:
            hop = msgspec.msgpack.decode(base64.urlsafe_b64decode(content), type=Hop)
        except (binascii.Error, msgspec.MsgspecError, ValueError):
            return None
        return hop if hop.target == own else None

    def _proof(self, request: Request, content: str, fingerprint: bytes) -> str:
        line = f"{request.method} {request.target} {content}".encode("latin-1")
        made = hmac.new(self._secret, _PURPOSE + fingerprint + line, hashlib.sha256)
        return made.hexdigest()


def restore(request: Request, hop: Hop) -> None:
    """Make a forwarded request what the first gateway received."""
    dropped = (HEADER,) if hop.has_host else (HEADER, "host")
    fields = request.headers.fields
    request.headers = Headers(
        (name, value) for name, value in fields if name.lower() not in dropped
    )
    request.peer, request.tls, request.mount = hop.peer, hop.is_tls, hop.mount
    request.request_id, request.is_forwarded = hop.request_id, True
