"""The sign-in at the issuer of bearer tokens: its endpoints, and the exchange of a code for tokens.

Lives here: one request to the issuer's description at the start, and one to its token endpoint for
each sign-in, within limits. Must not live here: the page's part (state, nonce, verifier), the check
of tokens (auth/bearer.py). Source: OpenID Connect Core 1.0 section 3.1.3, Discovery 1.0 section 4,
RFC 7636 (PKCE). The page cannot ask the token endpoint itself: it may connect to its own origin
only. Nothing that is exchanged is kept or logged. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from typing import Final
from urllib.parse import SplitResult, urlencode, urlsplit

import msgspec

from strongroom.limits import KIB
from strongroom.servers.console.api.documents import ExchangedToken, SignInIssuer
from strongroom.servers.console.refusals import ApiRefusal
from strongroom.servers.copies.exchange import CopyExchange
from strongroom.services.core.copies.sources import SourceBroken

TIMEOUT_S: Final = 5.0
EXCHANGES_MAX: Final = 8
ANSWER_BYTES_MAX: Final = 64 * KIB
_DESCRIPTION: Final = "/.well-known/openid-configuration"
_FORM: Final = "application/x-www-form-urlencoded"
_SHOWN_CHARS: Final = 200
_CODE: Final = re.compile(r"[\x21-\x7e]{1,4096}")
_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_EXPIRES_S_MAX: Final = 30 * 24 * 3600
# Entra issues a token for storage only if its scope is asked for.
_ENTRA: Final = ("https://login.microsoftonline.com/", "https://sts.windows.net/")
_ENTRA_SCOPE: Final = "openid https://storage.azure.com/.default"


class IssuerUnusable(Exception):
    """The issuer cannot be asked, or its answer cannot be used; the text says why."""


class _Description(msgspec.Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str


class _Tokens(msgspec.Struct, frozen=True):
    access_token: str
    token_type: str = "Bearer"  # noqa: S105 - the name of a scheme
    expires_in: int = 3600
    id_token: str | None = None


class _Refused(msgspec.Struct, frozen=True):
    error: str
    error_description: str = ""


class CodeToExchange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of POST tokens."""

    code: str
    verifier: str
    redirect_uri: str


class SignIn(msgspec.Struct, frozen=True):
    """The sign-in at one issuer.

    Attributes:
        issuer: what the page is told.
        token_endpoint: the only address that is asked.
        tls: the context of the connections. It is made once: to read the authorities takes 25 ms,
            and anybody may ask for an exchange.
        places: of the exchanges that are under way at a time.
    """

    issuer: SignInIssuer
    token_endpoint: str
    tls: ssl.SSLContext
    places: asyncio.Semaphore = msgspec.field(
        default_factory=lambda: asyncio.Semaphore(EXCHANGES_MAX)
    )

    async def exchange(self, body: bytes, origin: str) -> ExchangedToken:
        """Return the tokens for a code. Raises: ApiRefusal.

        Arguments:
            body: a CodeToExchange as JSON.
            origin: of the console; only its own page may have been returned to.
        """
        sent = _code_of(body, origin)
        form = {
            "grant_type": "authorization_code",
            "client_id": self.issuer.client_id,
            "code": sent.code,
            "code_verifier": sent.verifier,
            "redirect_uri": sent.redirect_uri,
        }
        if self.places.locked():
            text = "Many sign-ins are under way. Wait a second, then repeat."
            raise ApiRefusal(429, "TooManyRequests", text)
        try:
            async with self.places:
                status, answer = await _ask(self.token_endpoint, self.tls, urlencode(form))
        except IssuerUnusable as error:
            raise ApiRefusal(502, "IssuerUnusable", f"{error}.") from None
        return _tokens_of(status, answer)


async def discover(issuer: str, client_id: str, tls: ssl.SSLContext | None = None) -> SignIn:
    """Return the sign-in at an issuer, by its own description. Raises: IssuerUnusable.

    Arguments:
        tls: see SignIn; None = the system's authorities.
    """
    tls = tls or ssl.create_default_context()
    status, answer = await _ask(issuer.rstrip("/") + _DESCRIPTION, tls)
    if status != 200:
        raise IssuerUnusable(f"the description of {issuer} was answered with status {status}")
    try:
        description = msgspec.json.decode(answer, type=_Description)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise IssuerUnusable(f"the description of {issuer} cannot be read") from None
    if description.issuer != issuer:
        raise IssuerUnusable(f"the description of {issuer} is that of {description.issuer[:100]!r}")
    for url in (description.authorization_endpoint, description.token_endpoint):
        _parts(url)
    told = SignInIssuer(
        name=urlsplit(issuer).netloc,
        authorization_endpoint=description.authorization_endpoint,
        client_id=client_id,
        scope=_ENTRA_SCOPE if issuer.startswith(_ENTRA) else "openid",
    )
    return SignIn(told, description.token_endpoint, tls)


def _code_of(body: bytes, origin: str) -> CodeToExchange:
    try:
        sent = msgspec.json.decode(body, type=CodeToExchange)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = 'The body must be {"code": ..., "verifier": ..., "redirect_uri": ...}.'
        raise ApiRefusal(400, "InvalidBody", text) from None
    if not (_CODE.fullmatch(sent.code) and _VERIFIER.fullmatch(sent.verifier)):
        raise ApiRefusal(400, "InvalidBody", "The code or the verifier cannot be one.")
    if sent.redirect_uri != f"{origin}/":
        raise ApiRefusal(400, "InvalidBody", f"redirect_uri must be {origin}/.")
    return sent


def _tokens_of(status: int, answer: bytes) -> ExchangedToken:
    try:
        if status != 200:
            refused = msgspec.json.decode(answer, type=_Refused)
            text = refused.error_description or refused.error
            raise ApiRefusal(403, "SignInRefused", _printable(text), "sign-in")
        tokens = msgspec.json.decode(answer, type=_Tokens)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = f"The issuer's answer (status {status}) cannot be read."
        raise ApiRefusal(502, "IssuerUnusable", text) from None
    if tokens.token_type.lower() != "bearer" or not tokens.access_token:
        raise ApiRefusal(502, "IssuerUnusable", "The issuer gave no bearer token.")
    return ExchangedToken(
        access_token=tokens.access_token,
        expires_in_s=max(0, min(tokens.expires_in, _EXPIRES_S_MAX)),
        id_token=tokens.id_token,
    )


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text[:_SHOWN_CHARS])


def _parts(url: str) -> SplitResult:
    """Return the parts of an https URL. Raises: IssuerUnusable."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme == "https" and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not (url.isascii() and url.isprintable() and " " not in url):
        raise IssuerUnusable(f"the issuer's address {url[:100]!r} is no https URL")
    return parts


async def _ask(url: str, tls: ssl.SSLContext, form: str | None = None) -> tuple[int, bytes]:
    """Return the status and the body of one request. Raises: IssuerUnusable.

    Arguments:
        form: the body of a POST; None = GET.
    """
    parts = _parts(url)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            port = parts.port or 443
            reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=tls)
            exchange = CopyExchange(reader, writer, TIMEOUT_S, TIMEOUT_S)
            try:
                writer.write(_request(parts, form))
                await exchange.read_head()
                return exchange.status, await _whole(exchange, parts.netloc)
            finally:
                exchange.close()
    except TimeoutError:
        raise IssuerUnusable(f"{parts.netloc} does not answer within {TIMEOUT_S:.0f} s") from None
    except (OSError, SourceBroken) as error:
        reason = "the connection broke" if isinstance(error, SourceBroken) else str(error)
        raise IssuerUnusable(f"{parts.netloc} cannot be asked: {reason}") from None


async def _whole(exchange: CopyExchange, host: str) -> bytes:
    answer = bytearray()
    async for piece in exchange.body():
        answer += piece
        if len(answer) > ANSWER_BYTES_MAX:
            raise IssuerUnusable(f"the answer of {host} is longer than {ANSWER_BYTES_MAX} bytes")
    return bytes(answer)


def _request(parts: SplitResult, form: str | None) -> bytes:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [
        f"{'GET' if form is None else 'POST'} {target} HTTP/1.1",
        f"Host: {parts.netloc}",
        "User-Agent: strongroom",
        "Accept: application/json",
        "Accept-Encoding: identity",
        "Connection: close",
    ]
    if form is not None:
        lines += [f"Content-Type: {_FORM}", f"Content-Length: {len(form)}"]
    return ("\r\n".join([*lines, "", ""]) + (form or "")).encode("ascii")
