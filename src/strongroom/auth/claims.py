"""The outcome of authentication, before the caller is authorized (authorize.py)."""

from __future__ import annotations

import enum
from typing import ClassVar

import msgspec

from strongroom.auth.bearer import Identity
from strongroom.auth.refusals import CHALLENGE
from strongroom.auth.request import Target
from strongroom.auth.roles import Assignments
from strongroom.auth.sas import Sas
from strongroom.values import PlusSign


class SasKind(enum.Enum):
    SERVICE = "service SAS"
    ACCOUNT = "account SAS"
    USER_DELEGATION = "user delegation SAS"


class SharedKeyClaim(msgspec.Struct, frozen=True):
    """The request is signed with a key of `account`. Its sender is the owner and may do everything.

    `plus` is the meaning of a `+` in the query that was signed. `key` is the number of the key that
    signed it, from 1 on.
    """

    account: str
    plus: PlusSign = PlusSign.UNSIGNED
    key: int = 1


class SasClaim(msgspec.Struct, frozen=True):
    """The request carries a SAS with a valid signature; times and policy are not checked yet.

    `target` is the resource that the signature was checked for. A service or user delegation SAS is
    valid for it only. The signature covers the token's own parameters only, so a `+` in the others
    is unsigned. `delegator` has the current roles of the user who signed a user delegation SAS. The
    account's key number `key`, from 1 on, signed the token or its user delegation key.
    """

    plus: ClassVar[PlusSign] = PlusSign.UNSIGNED

    account: str
    kind: SasKind
    sas: Sas
    target: Target
    delegator: Assignments = ()
    key: int = 1


class BearerClaim(msgspec.Struct, frozen=True):
    """The request carries a bearer token that was verified.

    Attributes:
        account: the account that the request addresses.
        assignments: the roles that the user and its groups have in the account.
    """

    plus: ClassVar[PlusSign] = PlusSign.UNSIGNED

    account: str
    identity: Identity
    assignments: Assignments


class Anonymous(msgspec.Struct, frozen=True):
    """The request carries no credentials. `challenge` says where a client can get a token."""

    plus: ClassVar[PlusSign] = PlusSign.UNSIGNED

    account: str
    challenge: str = CHALLENGE


Claim = SharedKeyClaim | SasClaim | BearerClaim | Anonymous
