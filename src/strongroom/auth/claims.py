"""Who is calling: the outcome of authentication, before anyone asked whether they may.

Lives here: frozen values. Must not live here: how a claim is proved (shared_key.py,
sas_signature.py) or what it allows (authorize.py).
"""

from __future__ import annotations

import enum
from typing import ClassVar

import msgspec

from strongroom.auth.request import Target
from strongroom.auth.sas import Sas
from strongroom.values import PlusSign


class SasKind(enum.Enum):
    """The three kinds of shared access signature."""

    SERVICE = "service SAS"
    ACCOUNT = "account SAS"
    USER_DELEGATION = "user delegation SAS"


class SharedKeyClaim(msgspec.Struct, frozen=True):
    """The request is signed with a key of `account`: its owner, who may do everything in it.

    `plus` is the meaning of a `+` in the query that was signed.
    """

    account: str
    plus: PlusSign = PlusSign.UNSIGNED


class SasClaim(msgspec.Struct, frozen=True):
    """The request carries a SAS with a genuine signature; times and policy are not judged yet.

    `target` is the resource the signature was checked for; it binds a service or user delegation
    SAS. The signature covers the token's own parameters only, so a `+` in the others is unsigned.
    """

    plus: ClassVar[PlusSign] = PlusSign.UNSIGNED

    account: str
    kind: SasKind
    sas: Sas
    target: Target


class Anonymous(msgspec.Struct, frozen=True):
    """The request carries no credentials."""

    plus: ClassVar[PlusSign] = PlusSign.UNSIGNED

    account: str


Claim = SharedKeyClaim | SasClaim | Anonymous
