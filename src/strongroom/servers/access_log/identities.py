"""The authentication of a request, as its line shows it.

Lives here: the field `identity`. Must not live here: who may do what (auth/). Nothing of it is a
secret: a signature appears as its SHA-256 only, from which it cannot be guessed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from functools import lru_cache
from typing import Final

from strongroom.auth.bearer import bearer_text
from strongroom.auth.claims import (
    Anonymous,
    BearerClaim,
    Claim,
    SasClaim,
    SasKind,
    SharedKeyClaim,
)
from strongroom.auth.sas import Sas, is_sas
from strongroom.servers.access_log.record import IdentityField, Requester
from strongroom.servers.access_log.texts import cut
from strongroom.wire.core.http import Request

ACCOUNT_KEY: Final = "Account Key"
SAS_KEY: Final = "SAS Key"
OAUTH: Final = "OAuth"
ANONYMOUS: Final = IdentityField("Anonymous")
_CACHED_MAX: Final = 1024


def identity_of(claim: Claim | None, request: Request | None) -> IdentityField:
    """`claim` is None if the credentials were not verified."""
    if isinstance(claim, SharedKeyClaim):
        return _of_key(claim.account, claim.key)
    if isinstance(claim, SasClaim):
        return _of_sas(claim.sas, claim.kind, claim.account, claim.key)
    if isinstance(claim, BearerClaim):
        identity = claim.identity
        requester = Requester(cut(identity.object_id), cut(identity.tenant))
        return IdentityField(OAUTH, account=claim.account, requester=requester)
    if isinstance(claim, Anonymous) or request is None:
        return ANONYMOUS
    return _unverified(request)


def identity_key(claim: Claim | None, request: Request) -> Hashable:
    """Return a value from which the field follows; it costs less than the field."""
    if type(claim) is SasClaim:
        return claim.sas, claim.account, claim.key
    if type(claim) is SharedKeyClaim:
        return claim.account, claim.key
    return identity_of(claim, request)


@lru_cache(maxsize=_CACHED_MAX)
def _of_key(account: str, number: int) -> IdentityField:
    return IdentityField(ACCOUNT_KEY, f"key{number}", account=account)


@lru_cache(maxsize=_CACHED_MAX)
def _of_sas(sas: Sas, kind: SasKind, account: str, number: int) -> IdentityField:
    digest = hashlib.sha256(sas.sig.encode("utf-8", "surrogatepass")).hexdigest().upper()
    delegator = Requester(cut(sas.skoid), cut(sas.sktid)) if sas.skoid else None
    return IdentityField(
        SAS_KEY,
        f"key{number},SasSignature({digest})",
        kind.value,
        cut(sas.si),
        account,
        delegator,
    )


def _unverified(request: Request) -> IdentityField:
    """Return the kind of credentials that a request carries, whose check failed or never began."""
    authorization = request.headers.get("authorization")
    if authorization is not None:
        kind = ACCOUNT_KEY if bearer_text(authorization) is None else OAUTH
        return IdentityField(kind, is_verified=False)
    if request.query and is_sas(request.query):
        return IdentityField(SAS_KEY, is_verified=False)
    return ANONYMOUS
