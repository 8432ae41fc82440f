"""Who is calling: the outcome of authentication, before anyone asked whether they may.

Lives here: frozen values. Must not live here: how a claim is proved (shared_key.py,
sas_signature.py) or what it allows (authorize.py).
"""

from __future__ import annotations

import enum

import msgspec

from strongroom.auth.request import Target
from strongroom.auth.sas import Sas


class SasKind(enum.Enum):
    """The three kinds of shared access signature."""

    SERVICE = "service SAS"
    ACCOUNT = "account SAS"
    USER_DELEGATION = "user delegation SAS"


class SharedKeyClaim(msgspec.Struct, frozen=True):
    """The request is signed with a key of `account`: its owner, who may do everything in it."""

    account: str


class SasClaim(msgspec.Struct, frozen=True):
    """The request carries a SAS with a genuine signature; times and policy are not judged yet.

    `target` is the resource the signature was checked for; it binds a service or user delegation
    SAS.
    """

    account: str
    kind: SasKind
    sas: Sas
    target: Target


class Anonymous(msgspec.Struct, frozen=True):
    """The request carries no credentials."""

    account: str


Claim = SharedKeyClaim | SasClaim | Anonymous
