"""Stored access policies: merges a SAS with its policy, and checks the times of a SAS.

Source: "Define a stored access policy". A field may stand in the token or in the policy, not in
both. Expiry and permission must stand in one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from strongroom.auth.refusals import authentication_failed
from strongroom.auth.sas import Sas
from strongroom.errors.core import invalid_query
from strongroom.times import parse_iso8601
from strongroom.values import TICKS_PER_S, AccessPolicy, iso7

# Before this version a token without a stored policy was limited to one hour.
_LONG_TOKENS_SINCE: Final = "2012-02-12"
_ONE_HOUR_TICKS: Final = 3600 * TICKS_PER_S


class EffectiveRights(msgspec.Struct, frozen=True):
    """The rights of token and policy together. Times are in ticks; a `start` of None means at
    once."""

    permission: str
    start: int | None
    expiry: int


def resolve(sas: Sas, policies: Sequence[AccessPolicy]) -> EffectiveRights:
    """The permission and times of `sas`, completed by the stored policy that it names."""
    return _resolve(sas, _policy(sas.si, policies)) if sas.si else _resolve_alone(sas)


@lru_cache(maxsize=256)
def _resolve_alone(sas: Sas) -> EffectiveRights:
    return _resolve(sas, AccessPolicy(""))


def _resolve(sas: Sas, policy: AccessPolicy) -> EffectiveRights:
    permission = _one("sp", sas.sp, policy.permission, policy.id)
    start = _one("st", sas.st, policy.start, policy.id)
    expiry = _one("se", sas.se, policy.expiry, policy.id)
    if not permission:
        raise _absent("permission", "sp")
    if not expiry:
        raise _absent("expiry", "se")
    return EffectiveRights(
        permission, _ticks("start", start) if start else None, _ticks("expiry", expiry)
    )


def _policy(identifier: str, policies: Sequence[AccessPolicy]) -> AccessPolicy:
    for policy in policies:
        if policy.id == identifier:
            return policy
    raise authentication_failed(
        "SAS identifier cannot be found for specified signed identifier: no stored access policy "
        f"'{identifier}' is set on the resource."
    )


def _one(name: str, given: str, stored: str | None, policy_id: str) -> str:
    if given and stored:
        raise invalid_query(name, given, f"The stored access policy '{policy_id}' sets it too.")
    return given or stored or ""


def _absent(noun: str, name: str) -> Exception:
    return authentication_failed(
        f"The shared access signature has no {noun}: neither {name} in the URL nor a stored access "
        "policy sets it."
    )


def _ticks(noun: str, text: str) -> int:
    ticks = parse_iso8601(text)
    if ticks is None:
        raise authentication_failed(f"The {noun} '{text}' is not a UTC time.")
    return ticks


def judge_times(sas: Sas, effective: EffectiveRights, now_wall_ticks: int) -> None:
    start, expiry = effective.start, effective.expiry
    if start is not None and now_wall_ticks < start:
        raise authentication_failed(
            "Signature not valid in the specified time frame: the shared access signature is not "
            f"valid yet: Start [{iso7(start)}] - Expiry [{iso7(expiry)}] - "
            f"Current [{iso7(now_wall_ticks)}]"
        )
    if now_wall_ticks >= expiry:
        since = "-" if start is None else iso7(start)
        raise authentication_failed(
            "Signature not valid in the specified time frame: the shared access signature has "
            f"expired: Start [{since}] - Expiry [{iso7(expiry)}] - "
            f"Current [{iso7(now_wall_ticks)}]"
        )
    begins = now_wall_ticks if start is None else start
    if sas.sv < _LONG_TOKENS_SINCE and not sas.si and expiry - begins > _ONE_HOUR_TICKS:
        raise authentication_failed(
            "Without a stored access policy, a shared access signature of this version may be "
            "valid for one hour at most."
        )
