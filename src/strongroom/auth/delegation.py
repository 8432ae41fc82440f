"""User delegation keys: derived from an account's key, so that none is stored.

    value = HMAC-SHA256(account key, the fields of the delegation key)

A client sends the fields of its key with each token. So the server derives the same value again,
even after a restart or in another process, without storage. When an account key is removed, all
delegation keys derived from it become invalid.

Who may get a key says roles.py; the document is wire/core/user_delegation_key.py. Source: "Get User
Delegation Key" and "Create a user delegation SAS"; reference auth.md, section 6.3.
"""

from __future__ import annotations

import base64
from typing import Final

import msgspec

from strongroom.auth.accounts import Account, Signer
from strongroom.auth.refusals import authentication_failed
from strongroom.auth.request import Service
from strongroom.auth.sas import Sas
from strongroom.times import parse_iso8601
from strongroom.values import TICKS_PER_S, iso7

LIFETIME_TICKS_MAX: Final = 7 * 24 * 3600 * TICKS_PER_S
# No other text that an account key signs begins like this. Requests begin with a verb and tokens
# with letters, and neither may contain a control character.
_PURPOSE: Final = "\0user delegation key"


class DelegationKey(msgspec.Struct, frozen=True):
    """The fields of a user delegation key.

    Attributes:
        object_id, tenant: the delegator.
        start, expiry: times in ticks, whole seconds.
        service: the letter of the service that issued it.
        version: x-ms-version of the request that it was issued to.
        delegated_tenant: the tenant of the users who may use tokens signed with it; "" = any.
    """

    object_id: str
    tenant: str
    start: int
    expiry: int
    service: str
    version: str
    delegated_tenant: str = ""


def time_text(ticks: int) -> str:
    """The form of the key's fields: `2024-01-31T12:00:00Z`."""
    return iso7(ticks)[:19] + "Z"


def value_of(key: DelegationKey, account: str, signer: Signer) -> bytes:
    """The 32 bytes of a delegation key, derived from one key of the account."""
    fields = (
        _PURPOSE,
        account,
        key.object_id,
        key.tenant,
        time_text(key.start),
        time_text(key.expiry),
        key.service,
        key.version,
        key.delegated_tenant,
    )
    text = "\n".join(fields).encode("utf-8", "surrogatepass")
    return base64.b64decode(signer.sign(text))


def key_named(sas: Sas) -> DelegationKey:
    """The delegation key whose fields a user delegation SAS names."""
    start, expiry = parse_iso8601(sas.skt), parse_iso8601(sas.ske)
    if start is None or expiry is None:
        raise authentication_failed("The user delegation key's times (skt, ske) cannot be read.")
    return DelegationKey(sas.skoid, sas.sktid, start, expiry, sas.sks, sas.skv, sas.skdutid)


def values_for(sas: Sas, account: Account) -> tuple[bytes, ...]:
    """The possible values of a user delegation SAS's key: one for each key of the account."""
    key = key_named(sas)
    return tuple(value_of(key, account.name, signer) for signer in account.signers)


def judge_key(sas: Sas, service: Service, now_wall_ticks: int) -> None:
    """Refuse a user delegation SAS whose key is for another time or service. Also refuse fields
    that need a hierarchical namespace."""
    key = key_named(sas)
    if key.service != service.letter:
        raise authentication_failed(
            f"The user delegation key is for another service (sks='{sas.sks}')."
        )
    if key.expiry - key.start > LIFETIME_TICKS_MAX:
        raise authentication_failed("The user delegation key is valid for more than 7 days.")
    if not key.start <= now_wall_ticks < key.expiry:
        raise authentication_failed(
            "The user delegation key is not valid at this time: Start "
            f"[{iso7(key.start)}] - Expiry [{iso7(key.expiry)}] - Current [{iso7(now_wall_ticks)}]"
        )
    if sas.suoid:
        raise authentication_failed(
            "The shared access signature is for a user whose POSIX rights are to be checked "
            "(suoid), which needs a hierarchical namespace."
        )
    if sas.skdutid and not sas.sduoid:
        raise authentication_failed(
            "The user delegation key is for users of one tenant (skdutid), but the shared access "
            "signature names no user (sduoid)."
        )
