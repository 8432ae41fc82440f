"""Authentication: the one place where a request's credentials become a claim.

Source: "Authorize requests to Azure Storage"; an Authorization header takes precedence over a
shared access signature in the URL.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from strongroom.auth import bearer, delegation
from strongroom.auth.accounts import Account, Accounts
from strongroom.auth.bearer import Identities, Identity
from strongroom.auth.claims import (
    Anonymous,
    BearerClaim,
    Claim,
    SasClaim,
    SasKind,
)
from strongroom.auth.refusals import (
    CHALLENGE,
    authentication_failed,
    invalid_authentication_info,
)
from strongroom.auth.request import RequestParts, Service, Target
from strongroom.auth.sas import decode_query, is_sas, parse_sas, token_of
from strongroom.auth.sas_signature import kind_of, verify_signature
from strongroom.auth.shared_key import parse_authorization, verify
from strongroom.errors.core import StorageError
from strongroom.values import is_cacheable

# A constant, since an attribute access on an enumeration costs a call in Python 3.11.
_ACCOUNT: Final = SasKind.ACCOUNT


def authenticate(
    parts: RequestParts,
    target: Target,
    accounts: Accounts,
    wall_ticks: int,
    identities: Identities | None = None,
) -> Claim:
    """Try the request's credentials in their order.

    Arguments:
        wall_ticks: the current wall time; the date of a signed request may differ by 15 minutes.
        identities: judges bearer tokens; None = none is accepted.

    Raises: StorageError with the check that failed. ServerBusy while there are no keys to check a
        bearer token with.
    """
    authorization = parts.headers.get("authorization")
    if authorization is not None:
        if "authorization" in parts.headers.repeats:
            raise invalid_authentication_info("The Authorization header is given more than once.")
        token = None if identities is None else bearer.bearer_text(authorization)
        if token is not None and identities is not None:
            account = _account(target, accounts)
            return _bearer(token, parts, target, account, wall_ticks, identities)
        credential = parse_authorization(authorization)
        account = _account(target, accounts)
        return verify(credential, parts, target.service, account, wall_ticks)
    account = _account(target, accounts)
    claim = _shared_access(parts.query, parts, target, account, identities) if parts.query else None
    if claim is None:
        return Anonymous(account.name, identities.issuer.challenge() if identities else CHALLENGE)
    if claim.sas.sduoid:
        raise authentication_failed(
            "The shared access signature is for one user (sduoid): send a bearer token of this "
            "user with it."
        )
    return claim


def _bearer(
    text: str,
    parts: RequestParts,
    target: Target,
    account: Account,
    wall_ticks: int,
    identities: Identities,
) -> BearerClaim | SasClaim:
    """The claim is that of the token, or of a SAS that was issued for its user and sent with it."""
    identity = _identity(text, parts, target, wall_ticks, identities)
    if parts.query and any(name.lower() == "sduoid" for name, _ in decode_query(parts.query)):
        claim = _shared_access(parts.query, parts, target, account, identities)
        if claim is not None and claim.kind is SasKind.USER_DELEGATION:
            sas = claim.sas
            bearer.require_bound_user(identity, sas.sduoid, sas.skdutid or sas.sktid)
            return claim
    roles = identities.assignments(identity.principals, account.name)
    return BearerClaim(account.name, identity, roles)


def _identity(
    text: str, parts: RequestParts, target: Target, wall_ticks: int, identities: Identities
) -> Identity:
    issuer = identities.issuer
    bearer.check_transport(parts, issuer)
    token = bearer.parse_token(text)
    if issuer.signed:
        bearer.require_algorithm(token, issuer.challenge())
        identities.verify(token)
    return bearer.judge_claims(token, issuer, target, wall_ticks)


def _account(target: Target, accounts: Accounts) -> Account:
    account = accounts.get(target.account)
    if account is None:
        raise authentication_failed(f"This server has no account '{target.account}'.")
    return account


@lru_cache(maxsize=1024)
def _account_sas(query: str, service: Service, account: Account) -> SasClaim | None:
    """None for another kind of SAS, or no token.

    Such a token is signed for the whole account, so a client sends it repeatedly among other
    parameters. The cache keeps only that the signature is valid under these keys, and no refusal.
    Times, addresses, protocol and permissions are checked each time.
    """
    return _account_token(token_of(query), service, account)


@lru_cache(maxsize=256)
def _account_token(token: str, service: Service, account: Account) -> SasClaim | None:
    if not is_sas(token):
        return None
    sas = parse_sas(decode_query(token), service)
    if kind_of(sas) is not SasKind.ACCOUNT:
        return None
    return verify_signature(sas, account, Target(service, account.name))


def _shared_access(
    query: str,
    parts: RequestParts,
    target: Target,
    account: Account,
    identities: Identities | None,
) -> SasClaim | None:
    if is_cacheable(query) and "+" not in query:
        known = _account_sas(query, target.service, account)
        if known is not None:
            return SasClaim(account.name, _ACCOUNT, known.sas, target, key=known.key)
    if not is_sas(query):
        return None
    try:
        return _claim(parts, target, account, identities, plus_is_space=False)
    except StorageError as refusal:
        # Form encoders write a space as `+`; most clients write %20. Both sign the space.
        if "+" not in query:
            raise
        try:
            return _claim(parts, target, account, identities, plus_is_space=True)
        except StorageError:
            raise refusal from None


def _claim(
    parts: RequestParts,
    target: Target,
    account: Account,
    identities: Identities | None,
    plus_is_space: bool,
) -> SasClaim:
    pairs = decode_query(parts.query, plus_is_space)
    sas = parse_sas(pairs, target.service)
    if identities is None or kind_of(sas) is not SasKind.USER_DELEGATION:
        return verify_signature(sas, account, target, (), parts.headers, pairs)
    keys = delegation.values_for(sas, account)
    claim = verify_signature(sas, account, target, keys, parts.headers, pairs)
    roles = identities.assignments((sas.skoid,), account.name)
    return msgspec.structs.replace(claim, delegator=roles)
