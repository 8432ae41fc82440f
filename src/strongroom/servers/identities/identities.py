"""Judges bearer tokens by the current keys of their issuer and the current role assignments.

Lives here: the combination of keys and roles for authentication, and the cache of verified
signatures. Must not live here: what makes a token acceptable (auth/bearer.py), where keys and roles
are kept (identities/token_keys.py, identities/roles_file.py). A token never appears in a log.
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.auth import bearer
from strongroom.auth.bearer import BearerToken, Issuer
from strongroom.auth.claims import BearerClaim, Claim, SasClaim, SasKind
from strongroom.auth.key_set import ALGORITHMS, KeySet, is_signed
from strongroom.auth.refusals import invalid_token
from strongroom.auth.roles import Assignments
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.servers.identities.roles_file import ServedRoles
from strongroom.servers.identities.token_keys import TokenKeys
from strongroom.wire.core.http import Request

# A client sends the same token for about an hour. A token may be 16 KiB long.
_REMEMBERED: Final = 128


class ServedIdentities:
    """Judges bearer tokens: the Identities of auth/bearer.py.

    `keys` are those of `issuer`; None in development mode, in which signatures are not checked.
    """

    def __init__(self, issuer: Issuer, keys: TokenKeys | None, roles: ServedRoles) -> None:
        self.issuer = issuer
        self._keys = keys
        self._roles = roles
        self._verified: dict[str, None] = {}
        self._verified_with: KeySet | None = None

    async def ready(self, request: Request) -> None:
        """Wait until the key that a request's token needs is cached, or cannot be fetched."""
        text = bearer.bearer_text(request.headers.get("authorization"))
        if self._keys is None or text is None or not request.tls:
            return
        try:
            token = bearer.parse_token(text)
        except StorageError:
            return  # authentication refuses the token later
        if token.algorithm in ALGORITHMS:
            await self._keys.ready(token.kid)

    def verify(self, token: BearerToken) -> None:
        if self._keys is None:
            return
        keys = self._keys.current()
        if keys is not self._verified_with:
            self._verified, self._verified_with = {}, keys
        if token.text in self._verified:
            return
        _verify(token, keys, self.issuer)
        if len(self._verified) >= _REMEMBERED:
            del self._verified[next(iter(self._verified))]
        self._verified[token.text] = None

    def assignments(self, principals: tuple[str, ...], account: str) -> Assignments:
        return self._roles.of(principals, account)

    def all_assignments(self) -> Assignments:
        return self._roles.all()

    @property
    def is_open(self) -> bool:
        """Whether every principal may do everything (development mode without a roles file)."""
        return self._roles.is_open

    def snapshot(self, claim: Claim) -> IdentitiesSnapshot:
        """Return a snapshot of the keys and roles, by which a request with this claim can be judged
        later."""
        keys, roles = None, None
        if self._keys is not None and isinstance(claim, BearerClaim | SasClaim):
            keys = self._keys.current()
        if isinstance(claim, BearerClaim):
            roles = self.assignments(claim.identity.principals, claim.account)
        elif isinstance(claim, SasClaim) and claim.kind is SasKind.USER_DELEGATION:
            roles = self.assignments((claim.sas.skoid,), claim.account)
        return IdentitiesSnapshot(self.issuer, keys, roles or ())


class IdentitiesSnapshot(msgspec.Struct, frozen=True):
    """A snapshot of the keys and roles for one request: the Identities of auth/bearer.py without
    IO. Decisions may therefore call it.

    Attributes:
        keys: the issuer's keys; None if they could not be read.
        roles: the assignments of the request's principals.
    """

    issuer: Issuer
    keys: KeySet | None
    roles: Assignments

    def verify(self, token: BearerToken) -> None:
        _verify(token, self.keys, self.issuer)

    def assignments(self, principals: tuple[str, ...], account: str) -> Assignments:
        return self.roles


def _verify(token: BearerToken, keys: KeySet | None, issuer: Issuer) -> None:
    if keys is None:
        raise StorageError(
            errors.SERVER_BUSY, "The keys of the token issuer cannot be read at present."
        )
    key = keys.find(token.kid)
    if key is None:
        reason = "Signature validation failed. The issuer has no key with the token's kid."
        raise invalid_token(reason, issuer.challenge())
    if not is_signed(token.text, token.algorithm, key):
        reason = "Signature validation failed. The signature did not match."
        raise invalid_token(reason, issuer.challenge())
