"""Bearer tokens: parses them within limits, and checks issuer, audience and times.

    parse -> the key of its `kid` -> signature -> issuer, tenant, audience, times

The keys are in key_set.py, the rights of a principal in roles.py. Source: RFC 7519 (JWT), RFC 6750
(bearer tokens), "Authorize with Microsoft Entra ID"; reference auth.md, section 8. A token never
appears in an error, a repr or a log.
"""

from __future__ import annotations

import base64
import hmac
import math
import re
from typing import Final, Protocol

import msgspec

from strongroom.auth.key_set import ALGORITHMS
from strongroom.auth.refusals import (
    STORAGE_AUDIENCE,
    authentication_failed,
    challenge,
    invalid_authentication_info,
    invalid_token,
)
from strongroom.auth.request import RequestParts, Target
from strongroom.auth.roles import Assignments
from strongroom.values import LATEST_TICKS, TICKS_PER_S, UNIX_EPOCH_TICKS

TOKEN_CHARS_MAX: Final = 16 * 1024
SKEW_TICKS: Final = 60 * TICKS_PER_S
BEARER_SINCE: Final = "2017-11-09"
# A shared access signature names its delegator's tenant, even if the issuer has none.
NO_TENANT: Final = "00000000-0000-0000-0000-000000000000"
_GROUPS_MAX: Final = 1000
_ID_CHARS_MAX: Final = 256
# The application id of Azure Storage, which tokens of the second version name as their audience.
_STORAGE_APPLICATION: Final = "e406a681-f3d4-42a8-90b6-c2b029497af1"
_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_BEARER: Final = re.compile(r"bearer(?: +(.*))?", re.IGNORECASE | re.DOTALL)


class Issuer(msgspec.Struct, frozen=True, kw_only=True):
    """The issuer whose tokens are accepted.

    Attributes:
        name: the claim `iss`, exactly; None = any (development mode only).
        audiences: the accepted values of the claim `aud`; none = Azure Storage and the account's
            own URL.
        tenant: the claim `tid`; None = any.
        signed: whether signatures are checked; False = development mode, in which plain HTTP is
            accepted too.
        suffixes: domains below which `ACCOUNT` is a host of this server.
    """

    name: str | None
    audiences: tuple[str, ...] = ()
    tenant: str | None = None
    signed: bool = True
    suffixes: tuple[str, ...] = ()

    def challenge(self) -> str:
        """The value of WWW-Authenticate."""
        return challenge(self.name, self.tenant, (*self.audiences, STORAGE_AUDIENCE)[0])


class Identity(msgspec.Struct, frozen=True):
    """The user or application that a token identifies.

    Attributes:
        object_id: the claim `oid`, or `sub` if there is none.
        tenant: the claim `tid`, or NO_TENANT if there is none.
        groups: the claim `groups`.
    """

    object_id: str
    tenant: str = NO_TENANT
    groups: tuple[str, ...] = ()

    @property
    def principals(self) -> tuple[str, ...]:
        """The ids to which roles may be assigned, the user's own id first."""
        return (self.object_id, *self.groups)


class Identities(Protocol):
    """The trusted issuer, its keys and its roles, as authentication needs them to judge tokens."""

    @property
    def issuer(self) -> Issuer: ...

    def verify(self, token: BearerToken) -> None:
        """Check a token's signature.

        Raises: StorageError InvalidAuthenticationInfo (401) for a wrong signature, ServerBusy if
            there are no keys to check it with.
        """
        ...

    def assignments(self, principals: tuple[str, ...], account: str) -> Assignments: ...


class _Header(msgspec.Struct, frozen=True):
    alg: str
    kid: str | None = None
    crit: msgspec.Raw | None = None


class _Claims(msgspec.Struct, frozen=True):
    exp: int | float
    iss: str = ""
    aud: str | tuple[str, ...] = ()
    nbf: int | float | None = None
    tid: str = ""
    oid: str = ""
    sub: str = ""
    groups: tuple[str, ...] = ()


class BearerToken:
    """A parsed token. Its content must not be trusted before its signature was checked.

    Attributes:
        text: the compact form.
        algorithm, kid: the fields of its header.
        payload: the JSON of its claims.
    """

    __slots__ = ("algorithm", "kid", "payload", "text")

    def __init__(self, text: str, algorithm: str, kid: str | None, payload: bytes) -> None:
        self.text = text
        self.algorithm = algorithm
        self.kid = kid
        self.payload = payload


def bearer_text(authorization: str | None) -> str | None:
    """The token's text, "" if the header has none; None for another scheme or no header."""
    match = None if authorization is None else _BEARER.fullmatch(authorization)
    return None if match is None else (match[1] or "").strip()


def parse_token(text: str) -> BearerToken:
    """Parse a token in its compact form. A text that is too long is refused before it is
    decoded."""
    if len(text) > TOKEN_CHARS_MAX:
        raise invalid_authentication_info(
            f"The bearer token is longer than {TOKEN_CHARS_MAX} characters."
        )
    if not _COMPACT.fullmatch(text):
        raise invalid_authentication_info("The bearer token is not a JSON Web Token.")
    header_text, payload_text, _ = text.split(".")
    try:
        header = msgspec.json.decode(_decoded(header_text), type=_Header)
        payload = _decoded(payload_text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        raise invalid_authentication_info("The bearer token is not a JSON Web Token.") from None
    if header.crit is not None:
        raise invalid_authentication_info("The bearer token has critical extensions (crit).")
    return BearerToken(text, header.alg, header.kid, payload)


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def require_algorithm(token: BearerToken, challenged: str) -> None:
    """Refuse algorithms without public keys: `none`, and those with shared secrets."""
    if token.algorithm not in ALGORITHMS:
        accepted = ", ".join(sorted(ALGORITHMS))
        raise invalid_token(
            f"Signature validation failed. The algorithm must be one of {accepted}.", challenged
        )


def check_transport(parts: RequestParts, issuer: Issuer) -> None:
    """Refuse a token over plain HTTP, or with a service version older than bearer tokens."""
    if issuer.signed and not parts.tls:
        raise authentication_failed("Authentication scheme Bearer is not allowed with HTTP.")
    if (parts.headers.get("x-ms-version") or "") < BEARER_SINCE:
        raise authentication_failed(
            "Authentication scheme Bearer is not supported in this version. Send x-ms-version "
            f"{BEARER_SINCE} or later."
        )


def judge_claims(
    token: BearerToken, issuer: Issuer, target: Target, now_wall_ticks: int
) -> Identity:
    """Check the claims of a token with a valid signature, and return its identity.

    Arguments:
        target: the addressed resource; the token's audience may be its account.
        now_wall_ticks: the token's times may differ from it by a minute.
    """
    refused = issuer.challenge()
    try:
        claims = msgspec.json.decode(token.payload, type=_Claims)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise invalid_token("The token's claims cannot be read.", refused) from None
    if issuer.name is not None and not _equal_constant_time(claims.iss, issuer.name):
        raise invalid_token("Issuer validation failed. Issuer did not match.", refused)
    if issuer.tenant is not None and not _equal_constant_time(
        claims.tid.lower(), issuer.tenant.lower()
    ):
        raise invalid_token("Issuer validation failed. Tenant did not match.", refused)
    audiences = (claims.aud,) if isinstance(claims.aud, str) else claims.aud
    if not _is_audience(audiences, issuer, target):
        raise invalid_token("Audience validation failed. Audience did not match.", refused)
    _judge_times(claims, now_wall_ticks, refused)
    return _identity(claims, refused)


def _equal_constant_time(one: str, other: str) -> bool:
    return hmac.compare_digest(
        one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass")
    )


def _is_audience(audiences: tuple[str, ...], issuer: Issuer, target: Target) -> bool:
    accepted = {text.rstrip("/") for text in issuer.audiences}
    if not accepted:
        host = f"{target.account}.{target.service.value}.core.windows.net"
        accepted = {STORAGE_AUDIENCE, f"https://{host}", _STORAGE_APPLICATION}
        accepted |= {f"https://{target.account}.{suffix}" for suffix in issuer.suffixes}
    return any(text.rstrip("/") in accepted for text in audiences)


def _judge_times(claims: _Claims, now_wall_ticks: int, challenged: str) -> None:
    expires, begins = _ticks(claims.exp), 0 if claims.nbf is None else _ticks(claims.nbf)
    if expires is None or begins is None:
        raise invalid_token("Lifetime validation failed. A time cannot be read.", challenged)
    if now_wall_ticks >= expires + SKEW_TICKS:
        raise invalid_token("Lifetime validation failed. The token is expired.", challenged)
    if now_wall_ticks < begins - SKEW_TICKS:
        raise invalid_token("Lifetime validation failed. The token is not yet valid.", challenged)


def _ticks(seconds: int | float) -> int | None:
    """Seconds since 1970 (RFC 7519) as ticks; None if the time is out of range."""
    if not math.isfinite(seconds):
        return None
    ticks = UNIX_EPOCH_TICKS + int(seconds) * TICKS_PER_S
    return ticks if 0 <= ticks <= LATEST_TICKS else None


def _identity(claims: _Claims, challenged: str) -> Identity:
    object_id = claims.oid or claims.sub
    texts = (object_id, claims.tid, *claims.groups)
    is_short = all(len(text) <= _ID_CHARS_MAX for text in texts)
    if not object_id or not is_short or len(claims.groups) > _GROUPS_MAX:
        raise invalid_token("The token names no principal (claim oid or sub).", challenged)
    if not all(text.isascii() and text.isprintable() for text in texts):
        raise invalid_token("The token's principal has characters that no id has.", challenged)
    return Identity(object_id, claims.tid or NO_TENANT, claims.groups)


def require_bound_user(identity: Identity, object_id: str, tenant: str) -> None:
    """Refuse a bearer token of another user than a user delegation SAS was issued for."""
    same_tenant = _equal_constant_time(identity.tenant.lower(), tenant.lower())
    if not _equal_constant_time(identity.object_id, object_id) or not same_tenant:
        raise authentication_failed(
            "The shared access signature is for another user than the bearer token (sduoid)."
        )
