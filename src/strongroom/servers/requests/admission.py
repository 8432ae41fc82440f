"""Admission of a request: the steps from its URL and credentials to its typed call.

    read -> authenticate -> match -> place -> authorize -> decode

Lives here: these steps, for whole requests and for the parts of a batch. Must not live here:
running the call and encoding its answer (pipeline.py), sockets. Source: conditions.md section 10
(order of checks).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final

import msgspec

from strongroom import errors
from strongroom.auth.accounts import Account, Accounts
from strongroom.auth.authenticate import authenticate
from strongroom.auth.authorize import Grant, authorize
from strongroom.auth.claims import Anonymous, BearerClaim, Claim, SasClaim, SharedKeyClaim
from strongroom.auth.request import Service
from strongroom.auth.request import Target as Signed
from strongroom.auth.shared_key import refuse_repeated
from strongroom.clock import Clock, RequestIds
from strongroom.errors import StorageError
from strongroom.operations.core import codec, fields, unserved
from strongroom.operations.core.codec import Admitted
from strongroom.operations.core.endpoint import Endpoint, ResourceAddress
from strongroom.operations.core.spec import Operation, Resource
from strongroom.servers.identities.identities import IdentitiesSnapshot, ServedIdentities
from strongroom.services.core import account
from strongroom.services.core.calls import Call, Place, Reauthorize
from strongroom.services.core.runner import Services
from strongroom.values import PublicAccess
from strongroom.wire.core import query
from strongroom.wire.core.headers import METADATA_PREFIX
from strongroom.wire.core.http import Request
from strongroom.wire.core.path import FullPath, account_of_host
from strongroom.wire.core.path import parse as parse_path
from strongroom.wire.core.query import Query

DEFAULT_VERSION: Final = "2021-12-02"
OLDEST_VERSION: Final = "2009-09-19"

# Constants, since an attribute access on an enumeration costs a call in Python 3.11.
_ANY, _CONTAINER, _NOT_PUBLIC = Resource.ANY, Resource.CONTAINER, PublicAccess.NONE
# Services in which a SAS may be for one blob or file.
_SIGNED_BELOW: Final = (Service.BLOB, Service.FILE)
# So many parsed URLs are cached, if their paths are short.
_CACHED_URLS_MAX: Final = 2048
_CACHED_PATH_CHARS_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """Everything that the path of a request to one service needs: composed once (app.py).

    `suffixes` are the domains below which a label is an account. In tests, `strict` turns an error
    that an operation does not declare into a failure of the server. `identities` judges bearer
    tokens; None means that none is accepted.
    """

    services: Services
    endpoint: Endpoint
    accounts: Accounts
    clock: Clock
    suffixes: tuple[str, ...] = ()
    strict: bool = False
    identities: ServedIdentities | None = None
    request_ids: RequestIds = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "request_ids", RequestIds(self.clock))


class _ResolvedUrl(msgspec.Struct, frozen=True):
    """The resource that a URL names: its address for the services, and the target that a signature
    covers."""

    addressed: ResourceAddress
    signed: Signed


class ParsedRequest(msgspec.Struct):
    """A request whose URL has been parsed: the resource that it names, and the facts found later.

    `has_valid_names` means that every name in the URL is valid. If it is False, the names are
    checked after the caller is authorized. `authenticated_at` is the wall time in ticks at which
    its credentials were judged. `batch_version` is the version of the batch that contains this
    request. It is used if the request names none itself.
    """

    request: Request
    query: Query
    addressed: ResourceAddress
    signed: Signed
    has_valid_names: bool = False
    version: str | None = None
    operation: Operation | None = None
    authenticated_at: int = 0
    batch_version: str | None = None


def read(context: ServiceContext, request: Request, full: FullPath | None = None) -> ParsedRequest:
    """Parse the URL of a request.

    Arguments:
        full: the path that names the resource, if it differs from the URL's path. The signature
            covers the URL's path.

    Raises: StorageError InvalidUri, InvalidQueryParameterValue.
    """
    asked = query.parse(request.query)
    account = account_of_host(request.headers.get("host"), context.suffixes)
    path, mount = (request.path, request.mount) if full is None else full
    if asked.is_cached and len(path) <= _CACHED_PATH_CHARS_MAX:
        try:
            named = _named_cached(context.endpoint, asked, path, account, mount)
        except StorageError:
            pass  # `_named` or a later check raises it
        else:
            return ParsedRequest(
                request, asked, named.addressed, named.signed, has_valid_names=True
            )
    named = _named(context.endpoint, asked, path, account, mount)
    return ParsedRequest(request, asked, named.addressed, named.signed)


def _named(
    endpoint: Endpoint, asked: Query, raw_path: str, account: str | None, mount: str
) -> _ResolvedUrl:
    addressed = endpoint.address(parse_path(raw_path, account, mount), asked)
    target = addressed.target
    signed = Signed(
        endpoint.service,
        target.account,
        target.container,
        # A SAS is not signed for a single message or entity.
        target.blob if endpoint.service in _SIGNED_BELOW else None,
        asked.get("snapshot"),
        asked.get("versionid"),
    )
    return _ResolvedUrl(addressed, signed)


@lru_cache(maxsize=_CACHED_URLS_MAX)
def _named_cached(
    endpoint: Endpoint, asked: Query, raw_path: str, account: str | None, mount: str
) -> _ResolvedUrl:
    """Return the cached result of `_named`, for valid names only."""
    named = _named(endpoint, asked, raw_path, account, mount)
    endpoint.check_names(named.addressed)
    return named


def identify(context: ServiceContext, asked: ParsedRequest) -> Claim:
    """Return the claim of the caller.

    Raises: as authenticate, and InvalidHeaderValue for a single-valued header that was sent twice.
    """
    # A browser sends a preflight request before it may send credentials.
    if asked.request.method == "OPTIONS":
        return Anonymous(asked.addressed.target.account)
    asked.authenticated_at = context.clock.wall_ticks()
    claim = authenticate(
        asked.request, asked.signed, context.accounts, asked.authenticated_at, context.identities
    )
    if asked.request.headers.repeats:
        # The operation that reads metadata refuses a repeated name with an error of its own.
        refuse_repeated(asked.request.headers, besides=(METADATA_PREFIX,))
    return claim


async def admit(
    context: ServiceContext, asked: ParsedRequest, claim: Claim
) -> tuple[Operation, Call[Any]]:
    """Return the requested operation and its typed call, authorized.

    Raises: StorageError for each refusal that does not depend on the stored resource.
    """
    request, endpoint = asked.request, context.endpoint
    if request.query and "+" in request.query:
        # The resource does not depend on the meaning of `+`; the parameters read below may.
        asked.query = query.parse(request.query, claim.plus)
    method = endpoint.method(request)
    operation = endpoint.routes.match(
        method, asked.addressed.resource, asked.query, request.headers
    )
    asked.operation = operation
    bearer = claim if isinstance(claim, BearerClaim) else None
    if bearer is not None and method != "OPTIONS":
        endpoint.check_bearer(operation, request.headers)
    asked.version = _version(asked, claim)
    if asked.version is None and not isinstance(claim, Anonymous):
        asked.version = await _default_version(context, asked)
    target, place = asked.addressed.target, None
    if target.container is not None and operation.resource is not _ANY:
        service = endpoint.service
        place = await context.services.place(service, target.account, target.container)
        if place is None and operation.waits and operation.resource is _CONTAINER:
            place = await _awaited_place(context, operation, asked, claim, target.container)
    # As of the check of the credentials. After a wait for the container, they were judged again.
    now = asked.authenticated_at or context.clock.wall_ticks()
    grant = _judge(asked, claim, operation, place, now)
    _refuse_unserved(context, operation, asked)
    version = asked.version or DEFAULT_VERSION
    owner = isinstance(claim, SharedKeyClaim)
    renew = partial(_snapshot_judge, context, asked, claim, operation)
    admitted = Admitted(
        endpoint.service, asked.addressed, place, grant, renew, version, owner, bearer
    )
    if not asked.has_valid_names:
        endpoint.check_names(asked.addressed)
    return operation, await codec.decode(
        operation, request, asked.query, admitted, context.services.turns
    )


def _version(asked: ParsedRequest, claim: Claim) -> str | None:
    """Return x-ms-version, `api-version`, the batch's version or the SAS's own; None if there is
    none.

    Raises: StorageError InvalidHeaderValue.
    """
    given = asked.request.headers.get("x-ms-version")
    if given is not None:
        if not is_version(given):
            raise errors.invalid_header("x-ms-version", given)
        return given
    given = asked.query.get("api-version")
    if given is None:
        given = asked.batch_version
    if given is None and isinstance(claim, SasClaim):
        given = claim.sas.sv
    if given is not None and not is_version(given):
        raise errors.invalid_query("api-version", given)
    return given


async def _default_version(context: ServiceContext, asked: ParsedRequest) -> str:
    """Return the version of an account's requests that name none."""
    service, name = context.endpoint.service, asked.addressed.target.account
    found = await account.properties(context.services, service, name)
    return found.default_service_version or DEFAULT_VERSION


def is_version(text: str) -> bool:
    """Whether this can be an x-ms-version: every date from the oldest version on is accepted."""
    return len(text) == len(OLDEST_VERSION) and _is_date(text) and text >= OLDEST_VERSION


@lru_cache(maxsize=256)
def _is_date(text: str) -> bool:
    digits = text.replace("-", "")
    return text[4] == text[7] == "-" and len(digits) == 8 and digits.isascii() and digits.isdigit()


async def _awaited_place(
    context: ServiceContext,
    operation: Operation,
    asked: ParsedRequest,
    claim: Claim,
    container: str,
) -> Place | None:
    """Wait for a container that does not exist yet, and may be created while the request waits."""
    wait_s = fields.wait_s(asked.request, operation.waits)
    if not wait_s:
        return None
    # An unauthorized caller must not learn from a wait that the container does not exist.
    _judge(asked, claim, operation, None, context.clock.wall_ticks())
    service, name = context.endpoint.service, asked.addressed.target.account
    place = await context.services.await_place(service, name, container, wait_s, asked.request)
    _snapshot_judge(context, asked, claim, operation)(place)
    return place


def _judge(
    asked: ParsedRequest,
    claim: Claim,
    operation: Operation,
    place: Place | None,
    now_wall_ticks: int,
) -> Grant:
    if operation.resource is _ANY:
        return Grant("", may_overwrite=False)
    return authorize(
        claim,
        operation.permission,
        asked.signed,
        _NOT_PUBLIC if place is None else place.public_access,
        () if place is None else place.policies,
        now_wall_ticks,
        asked.request.peer,
        asked.request.tls,
        asked.version,
    )


class _AuthSnapshot(msgspec.Struct, frozen=True):
    """Accounts with a snapshot of one account (None if it did not exist), and a snapshot of the
    identities."""

    account: Account | None
    identities: IdentitiesSnapshot | None

    def get(self, name: str) -> Account | None:
        """See Accounts.get."""
        return self.account


def _snapshot_judge(
    context: ServiceContext, asked: ParsedRequest, claim: Claim, operation: Operation
) -> Reauthorize:
    """Return a judge of a request that has waited, since its key or role may have been removed.

    The judge reads neither the clock nor accounts, issuers' keys and roles. It may therefore be
    called in decisions.
    """
    identities = None if context.identities is None else context.identities.snapshot(claim)
    found = _AuthSnapshot(context.accounts.get(asked.signed.account), identities)
    return partial(_judge_again, asked, claim, operation, found, context.clock.wall_ticks())


def _judge_again(
    asked: ParsedRequest,
    claim: Claim,
    operation: Operation,
    found: _AuthSnapshot,
    now_wall_ticks: int,
    place: Place | None,
) -> Grant:
    if asked.authenticated_at:  # a part of a batch has no credentials of its own
        # As of the first check: the time that this server let the request wait must not count.
        claim = authenticate(
            asked.request, asked.signed, found, asked.authenticated_at, found.identities
        )
    return _judge(asked, claim, operation, place, now_wall_ticks)


def _refuse_unserved(context: ServiceContext, operation: Operation, asked: ParsedRequest) -> None:
    if not operation.is_served:
        raise unserved.not_served(f"The operation {operation.name}")
    context.endpoint.refuse_unserved(asked.request.headers, asked.query)
    if asked.addressed.target.secondary and operation.writes():
        message = "Write operations are not allowed on the secondary endpoint."
        raise StorageError(errors.INSUFFICIENT_ACCOUNT_PERMISSIONS, message)
