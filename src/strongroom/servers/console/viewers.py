"""Who asks the read API, and whose figures that is.

Lives here: credentials become a Viewer. Must not live here: what an endpoint needs (api/table.py),
whose a field is (marks.py), how signatures are checked (auth/). A request is signed as one to
the Blob service, with its path here as the resource. An account's key sees what is that account's
own. What concerns the whole server, or another account, is for operators. Nobody else learns
whether there is an account: a refusal is the same, and comes after the same checks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Literal
from urllib.parse import parse_qsl

import msgspec
from msgspec.structs import replace

from strongroom.auth.accounts import GENERATED_KEY_BYTES, Account, Accounts, AccountsError
from strongroom.auth.authenticate import authenticate
from strongroom.auth.bearer import bearer_text
from strongroom.auth.canonical import Scheme
from strongroom.auth.claims import BearerClaim, SharedKeyClaim
from strongroom.auth.request import Service, Target
from strongroom.auth.roles import OPERATOR, Assignments
from strongroom.auth.sas import is_sas
from strongroom.auth.shared_key import parse_authorization
from strongroom.errors.core import AUTHENTICATION_FAILED, INVALID_TOKEN, StorageError
from strongroom.servers.console.marks import ANYBODY, OWN, READABLE, SERVER, Mark
from strongroom.servers.console.refusals import ApiRefusal
from strongroom.servers.requests.admission import ServiceContext
from strongroom.wire.core.http import Request

SIGN_IN: Final = "sign-in"
ACCOUNT_KEY: Final = "account key"
OPERATOR_NEEDED: Final = "operator"
_DETAIL: Final = "AuthenticationErrorDetail"
_FAILED_LOGONS: Final = (AUTHENTICATION_FAILED, INVALID_TOKEN)
_SIGNATURE_SHOWN: Final = "(masked)"
_NAME_CHARS_MAX: Final = 64
_SIGNED_BY_OTHERS: Final = "is not the same as any computed signature"


class Viewer(msgspec.Struct, frozen=True):
    """Who asks, after the credential was verified.

    Attributes:
        claim: what the credential proves.
        is_operator: whether the whole server's figures are shown.
        assignments: the roles of a token's principal, in all accounts; () for a key.
    """

    claim: SharedKeyClaim | BearerClaim
    is_operator: bool
    assignments: Assignments = ()

    @property
    def kind(self) -> Literal["key", "bearer"]:
        return "key" if isinstance(self.claim, SharedKeyClaim) else "bearer"

    @property
    def account(self) -> str:
        """The account of the key; with a token, the one that the request names."""
        return self.claim.account

    @property
    def name(self) -> str:
        """The account of a key, or the principal's id."""
        return (
            self.account
            if isinstance(self.claim, SharedKeyClaim)
            else self.claim.identity.object_id
        )

    @property
    def scope(self) -> Literal["account", "server"] | None:
        """Whose figures it sees; None = none."""
        if self.is_operator:
            return "server"
        return "account" if self.kind == "key" else None

    @property
    def visible(self) -> frozenset[Mark]:
        if self.is_operator:
            return frozenset(Mark)
        return frozenset((ANYBODY, READABLE, OWN) if self.kind == "key" else (ANYBODY, READABLE))


class EveryAccount(msgspec.Struct, frozen=True):
    """Accounts by any usable name. One that is not served has a key that nobody knows.

    A credential for it is then checked, and refused, like a wrong one for an account that is.

    Attributes:
        served: the accounts that there are.
    """

    served: Accounts
    random_bytes: Callable[[int], bytes]

    def get(self, name: str) -> Account | None:
        """None for a name that no account can have."""
        try:
            return self.served.get(name) or Account(name, (self.random_bytes(GENERATED_KEY_BYTES),))
        except AccountsError:
            return None


NOBODY: Final = frozenset((ANYBODY,))
"""The marks that are visible without a credential."""
assert SERVER not in NOBODY


class Viewers(msgspec.Struct, frozen=True):
    """Verifies the credentials of requests to the read API.

    Attributes:
        context: of the Blob service.
        operator: the account whose key is an operator's; None = that of the only account.
    """

    context: ServiceContext
    accounts: Callable[[], tuple[Account, ...]]
    operator: str | None = None

    async def of(self, request: Request) -> Viewer:
        authorization = request.headers.get("authorization")
        if authorization is None:
            raise _unsigned(request)
        identities = self.context.identities
        if identities is not None:
            await identities.ready(request)
        try:
            is_token = identities is not None and bearer_text(authorization) is not None
            named = _named(request)
            account = (
                named or self.accounts()[0].name if is_token else _account_of_key(authorization)
            )
            claim = authenticate(
                request,
                Target(Service.BLOB, account),
                EveryAccount(self.context.accounts, self.context.clock.random_bytes),
                self.context.clock.wall_ticks(),
                identities if is_token else None,
            )
        except StorageError as error:
            raise self._refused(error, request, authorization) from None
        if isinstance(claim, SharedKeyClaim):
            return Viewer(claim, self.is_operator_account(claim.account))
        if isinstance(claim, BearerClaim):
            return self._bearer(claim, named)
        raise _sas()

    def is_operator_account(self, name: str) -> bool:
        served = [one.name for one in self.accounts()]
        if self.operator is not None:
            return name == self.operator and name in served
        return served == [name]

    def _bearer(self, claim: BearerClaim, named: str) -> Viewer:
        """Return the viewer of a token; `named` is the account that the request names, or ""."""
        identities = self.context.identities
        assert identities is not None
        served = [one.name for one in self.accounts()]
        principals = claim.identity.principals
        found = {
            name: roles for name in served if (roles := identities.assignments(principals, name))
        }
        every = tuple(one for roles in found.values() for one in roles)
        is_operator = any(one.role == OPERATOR for one in every)
        if not found or (named and named not in (served if is_operator else found)):
            raise _no_role(claim, named if is_operator else "")
        account = named or next(iter(found))
        claim = replace(claim, account=account, assignments=found.get(account, ()))
        return Viewer(claim, is_operator, every)

    def _refused(self, error: StorageError, request: Request, authorization: str) -> ApiRefusal:
        if error.row in _FAILED_LOGONS:
            now = asyncio.get_running_loop().time()
            how = f"console, {error.row.code}"
            account = _account_or_none(authorization)
            self.context.failed_logons.note(how, account, request.peer, now)
        details = [text for name, text in error.extras if name == _DETAIL]
        text = " ".join([error.message.split("\n", 1)[0], *details])
        if _SIGNED_BY_OTHERS in text:
            text += " Check the account's name and its key."
        status = error.row.status if error.row.status in (400, 401, 403, 503) else 403
        return ApiRefusal(status, error.row.code, _without_signature(text, authorization), SIGN_IN)


def _named(request: Request) -> str:
    given = dict(parse_qsl(request.query or "", keep_blank_values=True))
    return given.get("account", "")


def _no_role(claim: BearerClaim, unknown: str) -> ApiRefusal:
    """Return the refusal of a principal; it tells operators only that an account is unknown."""
    if unknown:
        text = f"This server has no account {unknown[:_NAME_CHARS_MAX]!r}."
        return ApiRefusal(403, "NoSuchAccount", text)
    return ApiRefusal(
        403,
        "NoRole",
        f"The principal {claim.identity.object_id} has no role here. An operator can give "
        "it one: strongroom role add.",
        OPERATOR_NEEDED,
    )


def _account_of_key(authorization: str) -> str:
    credential = parse_authorization(authorization)
    if credential.scheme is not Scheme.SHARED_KEY:
        raise ApiRefusal(
            403,
            "SharedKeyNeeded",
            "SharedKeyLite leaves out the query, which says what is asked. Sign with SharedKey.",
            ACCOUNT_KEY,
        )
    return credential.account


def _account_or_none(authorization: str) -> str:
    try:
        return parse_authorization(authorization).account
    except StorageError:
        return "-"


def _without_signature(text: str, authorization: str) -> str:
    """Return a text without the signature or the token that was received."""
    secret = authorization.rpartition(":")[2] if ":" in authorization else authorization
    secret = secret.rpartition(" ")[2].strip()
    return text.replace(secret, _SIGNATURE_SHOWN) if secret else text


def _unsigned(request: Request) -> ApiRefusal:
    if request.query and is_sas(request.query):
        return _sas()
    return ApiRefusal(
        401,
        "NoAuthenticationInformation",
        "This needs a signature by an account's key (Authorization: SharedKey), or a token.",
        SIGN_IN,
    )


def _sas() -> ApiRefusal:
    return ApiRefusal(
        403,
        "AccountKeyNeeded",
        "A shared access signature opens views of data only. This needs an account's key, or a "
        "token of a principal with a role.",
        ACCOUNT_KEY,
    )
