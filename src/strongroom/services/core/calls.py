"""The argument of a service function: the target, what was authorized, and the typed input.

Lives here: `Call`, the rule of an operation as the runner needs it, and `Place`. A place is the
container, queue, table or share as it was when the request was authorized.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Callable
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from strongroom.auth.authorize import Grant
from strongroom.auth.claims import BearerClaim
from strongroom.auth.request import Service
from strongroom.errors.core import CONDITION_NOT_MET, ErrorCode
from strongroom.semantics.core.conditions import NONE, Conditions
from strongroom.semantics.core.lease import LeaseUse
from strongroom.services.core.turns import Turn
from strongroom.values import AccessPolicy, BlobKind, FileSlice, PublicAccess, Purpose

I_co = TypeVar("I_co", covariant=True)


class Existence(enum.Enum):
    """The requirement of an operation on the existence of the blob that it names."""

    COMMITTED = "committed"
    """The blob must exist with committed content, otherwise 404 BlobNotFound."""
    CREATES = "creates"
    """The operation creates or replaces the blob."""
    ANY = "any"
    """Uncommitted blocks are enough (Get Block List, Lease Blob)."""
    KEPT = "kept"
    """The named snapshot or version must exist. A soft-deleted one counts as existing."""


class ConditionUse(enum.Enum):
    """The conditional headers that an operation accepts (conditions.md, section 2)."""

    NONE = "none"
    READ = "read"
    WRITE = "write"
    REFUSED = "refused"
    """Container operations: If-Match and If-None-Match are answered 400."""
    DATES = "dates"
    """Container operations that take If-Modified-Since and If-Unmodified-Since."""
    MODIFIED_SINCE = "modified-since"
    """Set Container Metadata: If-Modified-Since only."""
    UNMODIFIED_SINCE = "unmodified-since"
    """Set Blob Immutability Policy: If-Unmodified-Since only."""
    TAGS = "tags"
    """Get Block List: x-ms-if-tags only."""
    BLOB_READ = "blob-read"
    """Get Blob Tags: x-ms-if-tags, and the four others as x-ms-blob-if-*."""
    BLOB_WRITE = "blob-write"
    """Set Blob Tags: the same headers as BLOB_READ."""
    IGNORED = "ignored"
    """Queues and tables: the headers have no effect (an entity's If-Match is a field)."""


class Rule(msgspec.Struct, frozen=True):
    """The checks that run before the decision of an operation.

    `unmet` is the error for a condition of a write that does not hold; copies have their own.
    `purpose` decides what the operation may do on a full disk. `kind` is the type that the blob
    must have, None = any. `names_scope`: a blob with a scope of its own requires that the
    request names it.
    """

    lease: LeaseUse = LeaseUse.NONE
    conditions: ConditionUse = ConditionUse.NONE
    existence: Existence = Existence.COMMITTED
    unmet: ErrorCode = CONDITION_NOT_MET
    purpose: Purpose = Purpose.GROWTH
    kind: BlobKind | None = None
    names_scope: bool = False


UNGUARDED: Final = Rule(conditions=ConditionUse.IGNORED)
"""The rule of queues and tables, which have neither leases nor conditions."""
UNGUARDED_FREEING: Final = Rule(conditions=ConditionUse.IGNORED, purpose=Purpose.FREEING)


class BodySource(Protocol):
    """The request's body, which can be read at most once.

    `is_held_back`: the client sends the body only after `100 Continue` (`Expect: 100-continue`).
    """

    size_bytes: int | None

    @property
    def is_held_back(self) -> bool: ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class RequestClient(Protocol):
    """`peer` is its address, `host` the host that it named."""

    peer: str
    is_disconnected: bool

    @property
    def host(self) -> str: ...

    @property
    def body(self) -> BodySource: ...

    def on_disconnect(self, callback: Callable[[], None]) -> None: ...


class Place(msgspec.Struct, frozen=True):
    """The facts about a container, queue, table or share that every request to it needs.

    All of them, `version` included, are from the record as it was when the request was authorized.
    `record` is the decoded record, for services that would otherwise read it again. `scope` is the
    container's default encryption scope; "" = the account's own.
    """

    generation: int
    version: int
    policies: tuple[AccessPolicy, ...] = ()
    public_access: PublicAccess = PublicAccess.NONE
    record: object = None
    scope: str = ""


class CallTarget(msgspec.Struct, frozen=True):
    """The resource that a request names.

    `container` is the container, queue, table or share. `blob` is the name of the blob, or a
    message's id. `entity` is an entity's PartitionKey and RowKey. `snapshot` is a snapshot's time
    in ticks, and `version` a version's id in ticks. `secondary`: whether the request went to the
    secondary endpoint.
    """

    service: Service
    account: str
    container: str
    blob: str = ""
    snapshot: int | None = None
    entity: tuple[str, str] | None = None
    secondary: bool = False
    version: int | None = None


Reauthorize = Callable[[Place | None], object]
"""Authorizes a caller for a place, by the values at its creation. Raises: StorageError."""


class Caller(msgspec.Struct, frozen=True):
    """The caller, and the rights that were granted.

    `authorize` reads wall time, the account's keys and the caller's roles, and returns a function
    that authorizes by these values. The caller is authorized again when the place has changed
    since, and at each attempt of a waiting request. `version` is the request's x-ms-version.
    `owner`: the request is signed with the account's key. `bearer`: the identity in the bearer
    token, if there is one.
    """

    authorize: Callable[[], Reauthorize]
    grant: Grant
    version: str
    owner: bool = False
    bearer: BearerClaim | None = None


class Terms(msgspec.Struct, frozen=True):
    """The conditions under which a request may be carried out.

    `wait_s` is `x-strongroom-wait` (0 = do not wait). `scope` is the encryption scope that the
    request names; "" = the account's own, None = none.
    """

    conditions: Conditions = NONE
    lease_id: str | None = None
    wait_s: int = 0
    scope: str | None = None


NO_TERMS: Final = Terms()


class Call(msgspec.Struct, Generic[I_co], frozen=True):
    """One request, decoded and authorized.

    `place` is None for operations on the account, and for one that creates a place. `input` is
    specific to the operation. `reauthorize` authorizes the caller again; decisions get calls from
    `with_pure_authorization`, which have one. `turn` is that of a request that waits in line.
    """

    rule: Rule
    target: CallTarget
    place: Place | None
    caller: Caller
    terms: Terms
    client: RequestClient
    input: I_co
    reauthorize: Reauthorize | None = None
    turn: Turn | None = None

    def with_pure_authorization(self) -> Call[I_co]:
        """Return a copy with a pure `reauthorize`: decisions read no wall time and no accounts."""
        reauthorize = self.caller.authorize()
        return Call(
            self.rule,
            self.target,
            self.place,
            self.caller,
            self.terms,
            self.client,
            self.input,
            reauthorize,
            self.turn,
        )


Piece = bytes | FileSlice
