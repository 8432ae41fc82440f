"""Get User Delegation Key: a key with which a user may sign shared access signatures.

Lives here: which key is issued. Source: "Get User Delegation Key"; reference auth.md, section 6.3.
"""

from __future__ import annotations

import msgspec

from strongroom.auth import delegation
from strongroom.auth.accounts import Accounts
from strongroom.auth.delegation import LIFETIME_TICKS_MAX, DelegationKey
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.services.core.calls import Call
from strongroom.services.core.runner import Services
from strongroom.values import TICKS_PER_S
from strongroom.wire.core import xml
from strongroom.wire.core.user_delegation_key import KeyInfo


class DelegationAccounts(msgspec.Struct, frozen=True):
    """The accounts that the program was composed with, whose keys derive user delegation keys."""

    accounts: Accounts | None = None


class GetUserDelegationKey(msgspec.Struct, frozen=True):
    wanted: KeyInfo


class IssuedKey(msgspec.Struct, frozen=True):
    key: DelegationKey
    value: bytes


async def get_user_delegation_key(
    services: Services, call: Call[GetUserDelegationKey]
) -> IssuedKey:
    """Stores nothing. AuthenticationFailed: the account has been removed meanwhile."""
    bearer = call.caller.bearer
    accounts = services.held.of(DelegationAccounts).accounts
    account = None if accounts is None else accounts.get(call.target.account)
    if bearer is None or account is None:
        raise StorageError(errors.AUTHENTICATION_FAILED)
    start, expiry = validity(call.input.wanted, services.clock.wall_ticks())
    key = DelegationKey(
        bearer.identity.object_id,
        bearer.identity.tenant,
        start,
        expiry,
        call.target.service.letter,
        call.caller.version,
        call.input.wanted.delegated_tenant,
    )
    return IssuedKey(key, delegation.value_of(key, account.name, account.signers[0]))


def validity(wanted: KeyInfo, now_wall_ticks: int) -> tuple[int, int]:
    """Return (start, expiry) of a key in ticks, rounded to whole seconds; start defaults to now."""
    start = now_wall_ticks if wanted.start is None else wanted.start
    start, expiry = start - start % TICKS_PER_S, wanted.expiry - wanted.expiry % TICKS_PER_S
    latest = now_wall_ticks + LIFETIME_TICKS_MAX
    end = delegation.time_text(expiry)
    if expiry <= start or expiry <= now_wall_ticks:
        raise xml.invalid_node("Expiry", end, "It must be after Start, and after the present.")
    if expiry > latest or expiry - start > LIFETIME_TICKS_MAX:
        reason = "A key is valid for 7 days at most, counted from the present and from Start."
        raise xml.invalid_node("Expiry", end, reason)
    return start, expiry
