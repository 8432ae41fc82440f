"""Who asks the read API, and whose figures that is.

Lives here: credentials become a Viewer. Must not live here: what an endpoint needs (api/table.py),
whose a field is (marks.py), how signatures are checked (auth/). A request is signed as one to
the Blob service, with its path here as the resource. An account's key sees what is that account's
own. What concerns the whole server, or another account, is for operators.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Literal
from urllib.parse import parse_qsl

import msgspec

from strongroom.auth.accounts import Account
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
        """The kind of the credential."""
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
        """The marks of the fields that it sees."""
        if self.is_operator:
            return frozenset(Mark)
        return frozenset((ANYBODY, READABLE, OWN) if self.kind == "key" else (ANYBODY, READABLE))


NOBODY: Final = frozenset((ANYBODY,))
"""The marks that are visible without a credential."""
assert SERVER not in NOBODY


class Viewers(msgspec.Struct, frozen=True):
    """Verifies the credentials of requests to the read API.

    Attributes:
        context: of the Blob service.
        accounts: returns the served accounts.
        operator: the account whose key is an operator's; None = that of the only account.
    """

    context: ServiceContext
    accounts: Callable[[], tuple[Account, ...]]
    operator: str | None = None

    async def of(self, request: Request) -> Viewer:
        """Return who asks. Raises: ApiRefusal."""
        authorization = request.headers.get("authorization")
        if authorization is None:
            raise _unsigned(request)
        identities = self.context.identities
        if identities is not None:
            await identities.ready(request)
        try:
            is_token = identities is not None and bearer_text(authorization) is not None
            account = self._named(request) if is_token else _account_of_key(authorization)
            claim = authenticate(
                request,
                Target(Service.BLOB, account),
                self.context.accounts,
                self.context.clock.wall_ticks(),
                identities if is_token else None,
            )
        except StorageError as error:
            raise self._refused(error, request, authorization) from None
        if isinstance(claim, SharedKeyClaim):
            return Viewer(claim, self.is_operator_account(claim.account))
        if isinstance(claim, BearerClaim):
            return self._bearer(claim)
        raise _sas()

    def is_operator_account(self, name: str) -> bool:
        """Whether the key of an account is an operator's."""
        if self.operator is not None:
            return name == self.operator
        return len(self.accounts()) == 1

    def _bearer(self, claim: BearerClaim) -> Viewer:
        assert self.context.identities is not None
        found = tuple(
            one
            for account in self.accounts()
            for one in self.context.identities.assignments(claim.identity.principals, account.name)
        )
        if not found:
            raise ApiRefusal(
                403,
                "NoRole",
                f"The principal {claim.identity.object_id} has no role here. An operator can give "
                "it one: strongroom role add.",
                OPERATOR_NEEDED,
            )
        return Viewer(claim, any(one.role == OPERATOR for one in found), found)

    def _named(self, request: Request) -> str:
        """Return the account that a request with a token names, else the first one."""
        given = dict(parse_qsl(request.query or "", keep_blank_values=True))
        return given.get("account") or self.accounts()[0].name

    def _refused(self, error: StorageError, request: Request, authorization: str) -> ApiRefusal:
        if error.row in _FAILED_LOGONS:
            now = asyncio.get_running_loop().time()
            how = f"console, {error.row.code}"
            account = _account_or_none(authorization)
            self.context.failed_logons.note(how, account, request.peer, now)
        details = [text for name, text in error.extras if name == _DETAIL]
        text = " ".join([error.message.split("\n", 1)[0], *details])
        status = error.row.status if error.row.status in (400, 401, 403, 503) else 403
        return ApiRefusal(status, error.row.code, _without_signature(text, authorization), SIGN_IN)


def _account_of_key(authorization: str) -> str:
    """Return the account that a signature names. Raises: StorageError, ApiRefusal."""
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
