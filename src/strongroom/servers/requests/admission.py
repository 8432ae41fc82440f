"""Admission of a request: the steps from its URL and credentials to its typed call.

    read -> authenticate -> match -> place -> authorize -> decode

A request for a place that another gateway holds is answered there, by all of these steps. This one
finds that out before it decodes the request, so nothing of the body has been read.

Lives here: these steps, for whole requests and for the parts of a batch. Must not live here:
running the call and encoding its answer (pipeline.py), sockets. Source: conditions.md section 10
(order of checks).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final

import msgspec

from strongroom.auth.accounts import Account, Accounts
from strongroom.auth.authenticate import authenticate
from strongroom.auth.authorize import Grant, authorize
from strongroom.auth.claims import Anonymous, BearerClaim, Claim, SasClaim, SharedKeyClaim
from strongroom.auth.request import Service
from strongroom.auth.request import Target as Signed
from strongroom.auth.shared_key import refuse_repeated
from strongroom.clock import Clock, RequestIds
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError, not_served
from strongroom.operations.core import codec, fields
from strongroom.operations.core.codec import Admitted
from strongroom.operations.core.endpoint import Endpoint, ResourceAddress
from strongroom.operations.core.spec import Operation, Resource
from strongroom.servers.failed_logons import FailedLogons
from strongroom.servers.identities.identities import IdentitiesSnapshot, ServedIdentities
from strongroom.servers.requests.facts import PartOutcome, Refusal
from strongroom.services.core import account
from strongroom.services.core.calls import Call, Place, Reauthorize
from strongroom.services.core.places import PLACES
from strongroom.services.core.runner import Services
from strongroom.values import PublicAccess
from strongroom.wire.core import query
from strongroom.wire.core.headers import METADATA_PREFIX
from strongroom.wire.core.http import Request, Response
from strongroom.wire.core.path import FullPath, account_of_host
from strongroom.wire.core.path import parse as parse_path
from strongroom.wire.core.query import Query

DEFAULT_VERSION: Final = "2021-12-02"
OLDEST_VERSION: Final = "2009-09-19"
ANONYMOUS_REFUSED: Final = (
    "This port serves no requests without credentials. What is public is so on the service's own "
    "port."
)

Forward = Callable[[int, Request], Awaitable[Response | None]]
"""forward(generation, request) -> the answer of the gateway that holds the place; None = this one
does, as long as the caller's task runs. Raises: StorageError ServerBusy."""

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
    tokens; None means that none is accepted. `serves_anonymous` is False where requests without
    credentials are refused, whatever is public. `forward` is None where no other gateway serves the
    store.
    """

    services: Services
    endpoint: Endpoint
    accounts: Accounts
    clock: Clock
    suffixes: tuple[str, ...] = ()
    strict: bool = False
    identities: ServedIdentities | None = None
    failed_logons: FailedLogons = field(default_factory=FailedLogons)
    serves_anonymous: bool = True
    forward: Forward | None = None
    request_ids: RequestIds = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "request_ids", RequestIds(self.clock))


class AnsweredElsewhere(Exception):
    """Another gateway has answered the request; not a refusal."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


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
    request. It is used if the request names none itself. `claim` is None before the caller is
    authenticated. `outcome` is the refusal of the request, or the parts of a batch.
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
    claim: Claim | None = None
    outcome: Refusal | tuple[PartOutcome, ...] | None = None


def read(context: ServiceContext, request: Request, full: FullPath | None = None) -> ParsedRequest:
    """`full` is the path that names the resource, if it differs from the URL's path. The signature
    covers the URL's path."""
    parameters = query.parse(request.query)
    account = account_of_host(request.headers.get("host"), context.suffixes)
    path, mount = (request.path, request.mount) if full is None else full
    if parameters.is_cached and len(path) <= _CACHED_PATH_CHARS_MAX:
        try:
            resolved = _resolve_url_cached(context.endpoint, parameters, path, account, mount)
        except StorageError:
            pass  # `_resolve_url` or a later check raises it
        else:
            return ParsedRequest(
                request, parameters, resolved.addressed, resolved.signed, has_valid_names=True
            )
    resolved = _resolve_url(context.endpoint, parameters, path, account, mount)
    return ParsedRequest(request, parameters, resolved.addressed, resolved.signed)


def _resolve_url(
    endpoint: Endpoint, parameters: Query, raw_path: str, account: str | None, mount: str
) -> _ResolvedUrl:
    addressed = endpoint.address(parse_path(raw_path, account, mount), parameters)
    target = addressed.target
    signed = Signed(
        endpoint.service,
        target.account,
        target.container,
        # A SAS is not signed for a single message or entity.
        target.blob if endpoint.service in _SIGNED_BELOW else None,
        parameters.get("snapshot"),
        parameters.get("versionid"),
    )
    return _ResolvedUrl(addressed, signed)


@lru_cache(maxsize=_CACHED_URLS_MAX)
def _resolve_url_cached(
    endpoint: Endpoint, parameters: Query, raw_path: str, account: str | None, mount: str
) -> _ResolvedUrl:
    """Only results with valid names are cached."""
    resolved = _resolve_url(endpoint, parameters, raw_path, account, mount)
    endpoint.check_names(resolved.addressed)
    return resolved


def identify(context: ServiceContext, parsed: ParsedRequest) -> Claim:
    """Raises: as authenticate, and InvalidHeaderValue for a single-valued header that was sent
    twice."""
    # A browser sends a preflight request before it may send credentials.
    if parsed.request.method == "OPTIONS":
        return Anonymous(parsed.addressed.target.account)
    parsed.authenticated_at = context.clock.wall_ticks()
    parsed.claim = claim = authenticate(
        parsed.request, parsed.signed, context.accounts, parsed.authenticated_at, context.identities
    )
    if type(claim) is Anonymous and not context.serves_anonymous:
        raise StorageError(
            errors.NO_AUTHENTICATION_INFORMATION,
            ANONYMOUS_REFUSED,
            headers=(("WWW-Authenticate", claim.challenge),),
        )
    if parsed.request.headers.repeats:
        # The operation that reads metadata refuses a repeated name with an error of its own.
        refuse_repeated(parsed.request.headers, besides=(METADATA_PREFIX,))
    return claim


async def admit(
    context: ServiceContext, parsed: ParsedRequest, claim: Claim
) -> tuple[Operation, Call[Any]]:
    """Every refusal that does not depend on the stored resource is raised here. Raises:
    AnsweredElsewhere too."""
    request, endpoint = parsed.request, context.endpoint
    if request.query and "+" in request.query:
        # The resource does not depend on the meaning of `+`; the parameters read below may.
        parsed.query = query.parse(request.query, claim.plus)
    method = endpoint.method(request)
    operation = endpoint.routes.match(
        method, parsed.addressed.resource, parsed.query, request.headers
    )
    parsed.operation = operation
    bearer = claim if isinstance(claim, BearerClaim) else None
    if bearer is not None and method != "OPTIONS":
        endpoint.check_bearer(operation, request.headers)
    parsed.version = _version(parsed, claim)
    if parsed.version is None and not isinstance(claim, Anonymous):
        parsed.version = await _default_version(context, parsed)
    target, place = parsed.addressed.target, None
    if target.container is not None and operation.resource is not _ANY:
        service = endpoint.service
        place = await context.services.place(service, target.account, target.container)
        if place is None and operation.waits and operation.resource is _CONTAINER:
            place = await _awaited_place(context, operation, parsed, claim, target.container)
    # As of the check of the credentials. After a wait for the container, they were judged again.
    now = parsed.authenticated_at or context.clock.wall_ticks()
    grant = _grant(parsed, claim, operation, place, now)
    _refuse_unserved(context, operation, parsed, place)
    if context.forward is not None and place is not None and endpoint.needs_holder(operation):
        answer = await context.forward(place.generation, request)
        if answer is not None:
            raise AnsweredElsewhere(answer)
    version = parsed.version or DEFAULT_VERSION
    owner = isinstance(claim, SharedKeyClaim)
    renew = partial(_reauthorizer, context, parsed, claim, operation)
    admitted = Admitted(
        endpoint.service, parsed.addressed, place, grant, renew, version, owner, bearer
    )
    if not parsed.has_valid_names:
        endpoint.check_names(parsed.addressed)
    return operation, await codec.decode(
        operation, request, parsed.query, admitted, context.services.turns
    )


def _version(parsed: ParsedRequest, claim: Claim) -> str | None:
    """x-ms-version, `api-version`, the batch's version or the SAS's own; None if there is none."""
    version_text = parsed.request.headers.get("x-ms-version")
    if version_text is not None:
        if not is_version(version_text):
            raise errors.invalid_header("x-ms-version", version_text)
        return version_text
    version_text = parsed.query.get("api-version")
    if version_text is None:
        version_text = parsed.batch_version
    if version_text is None and isinstance(claim, SasClaim):
        version_text = claim.sas.sv
    if version_text is not None and not is_version(version_text):
        raise errors.invalid_query("api-version", version_text)
    return version_text


async def _default_version(context: ServiceContext, parsed: ParsedRequest) -> str:
    """Return the version of an account's requests that name none."""
    service, name = context.endpoint.service, parsed.addressed.target.account
    properties = await account.properties(context.services, service, name)
    return properties.default_service_version or DEFAULT_VERSION


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
    parsed: ParsedRequest,
    claim: Claim,
    container: str,
) -> Place | None:
    """Wait for a container that does not exist yet, and may be created while the request waits."""
    wait_s = fields.wait_s(parsed.request, operation.waits)
    if not wait_s:
        return None
    # An unauthorized caller must not learn from a wait that the container does not exist.
    _grant(parsed, claim, operation, None, context.clock.wall_ticks())
    service, name = context.endpoint.service, parsed.addressed.target.account
    place = await context.services.await_place(service, name, container, wait_s, parsed.request)
    _reauthorizer(context, parsed, claim, operation)(place)
    return place


def _grant(
    parsed: ParsedRequest,
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
        parsed.signed,
        _NOT_PUBLIC if place is None else place.public_access,
        () if place is None else place.policies,
        now_wall_ticks,
        parsed.request.peer,
        parsed.request.tls,
        parsed.version,
    )


class _AuthSnapshot(msgspec.Struct, frozen=True):
    """Accounts with a snapshot of one account (None if it did not exist), and a snapshot of the
    identities."""

    account: Account | None
    identities: IdentitiesSnapshot | None

    def get(self, name: str) -> Account | None:
        return self.account


def _reauthorizer(
    context: ServiceContext, parsed: ParsedRequest, claim: Claim, operation: Operation
) -> Reauthorize:
    """Return a function that authorizes the request again after a wait.

    Its key or role may have been removed meanwhile. The function reads neither the clock nor
    accounts, issuers' keys and roles. It may therefore be called in decisions.
    """
    identities = None if context.identities is None else context.identities.snapshot(claim)
    snapshot = _AuthSnapshot(context.accounts.get(parsed.signed.account), identities)
    return partial(_reauthorize, parsed, claim, operation, snapshot, context.clock.wall_ticks())


def _reauthorize(
    parsed: ParsedRequest,
    claim: Claim,
    operation: Operation,
    snapshot: _AuthSnapshot,
    now_wall_ticks: int,
    place: Place | None,
) -> Grant:
    if parsed.authenticated_at:  # a part of a batch has no credentials of its own
        # As of the first check: the time that this server let the request wait must not count.
        claim = authenticate(
            parsed.request, parsed.signed, snapshot, parsed.authenticated_at, snapshot.identities
        )
    return _grant(parsed, claim, operation, place, now_wall_ticks)


def _refuse_unserved(
    context: ServiceContext, operation: Operation, parsed: ParsedRequest, place: Place | None
) -> None:
    if not operation.is_served:
        if operation.refusal is None:
            raise not_served(f"The operation {operation.name}")
        is_missing = place is None and parsed.addressed.target.container is not None
        missing = PLACES[context.endpoint.service].missing
        raise StorageError(missing if is_missing else operation.refusal)
    context.endpoint.refuse_unserved(parsed.request.headers, parsed.query)
    if parsed.addressed.target.secondary and operation.writes():
        message = "Write operations are not allowed. The request is for the secondary endpoint."
        raise StorageError(errors.INSUFFICIENT_ACCOUNT_PERMISSIONS, message)
