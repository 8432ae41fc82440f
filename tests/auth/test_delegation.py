"""User delegation keys: the derivation is repeatable, and the keys have no other use."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.auth.authorize import authorize
from strongroom.auth.claims import SasClaim, SasKind
from strongroom.auth.delegation import (
    LIFETIME_TICKS_MAX,
    DelegationKey,
    judge_key,
    key_named,
    value_of,
    values_for,
)
from strongroom.auth.request import Service
from strongroom.auth.roles import Assignment
from strongroom.auth.sas import Sas
from strongroom.errors.core import (
    AUTHENTICATION_FAILED,
    AUTHORIZATION_PERMISSION_MISMATCH,
    StorageError,
)
from strongroom.operations.core import permissions
from strongroom.values import TICKS_PER_S, PublicAccess
from tests.auth.signing import ACCOUNT, BLOB, CONTAINER, NAME, NOW, refused
from tests.refusals import OK, outcome

KEY = DelegationKey("me", "tenant", NOW, NOW + 3600 * TICKS_PER_S, "b", "2025-11-05")
SAS = Sas(
    sv="2025-11-05",
    sr="c",
    sp="rcwd",
    se="2099-01-01",
    skoid="me",
    sktid="tenant",
    skt="2015-06-26T23:39:12Z",
    ske="2015-06-27T00:39:12Z",
    sks="b",
    skv="2025-11-05",
)


def test_a_key_is_derived_from_what_it_says_of_itself() -> None:
    fields = "me|tenant|2015-06-26T23:39:12Z|2015-06-27T00:39:12Z|b|2025-11-05|"
    text = f"\0user delegation key|{NAME}|{fields}".replace("|", "\n").encode()
    expected = hmac.new(ACCOUNT.keys[0], text, hashlib.sha256).digest()
    assert value_of(KEY, NAME, ACCOUNT.signers[0]) == expected
    assert key_named(SAS) == KEY
    # Either account key may have made it.
    assert values_for(SAS, ACCOUNT)[0] == expected and len(values_for(SAS, ACCOUNT)) == 2


@given(st.sampled_from(list(DelegationKey.__struct_fields__)), st.integers(1, 9))
def test_another_field_is_another_key(name: str, more: int) -> None:
    value: Any = getattr(KEY, name)
    changed: Any = {
        name: value + more * TICKS_PER_S if isinstance(value, int) else f"{value}{more}"
    }
    other = msgspec.structs.replace(KEY, **changed)
    signer = ACCOUNT.signers[0]
    assert value_of(other, NAME, signer) != value_of(KEY, NAME, signer)
    assert value_of(KEY, NAME + "2", signer) != value_of(KEY, NAME, signer)
    assert value_of(KEY, NAME, ACCOUNT.signers[1]) != value_of(KEY, NAME, signer)


def test_a_key_ends_with_the_account_key_that_made_it() -> None:
    first = value_of(KEY, NAME, ACCOUNT.signers[0])
    rotated = ACCOUNT.rotated(b"new")
    assert first in values_for(SAS, rotated)
    assert first not in values_for(SAS, rotated.without_old_key())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sks": "q"}, "another service"),
        ({"ske": "2015-07-03T23:39:13Z"}, "more than 7 days"),
        ({"skt": "2015-06-26T23:39:13Z"}, "not valid at this time"),
        ({"skt": "2015-06-26T23:00:00Z", "ske": "2015-06-26T23:39:12Z"}, "not valid at this time"),
        ({"suoid": "x"}, "suoid"),
        ({"skdutid": "x"}, "names no user"),
    ],
)
def test_a_key_that_does_not_hold(changes: dict[str, str], reason: str) -> None:
    """B-UDK-05, B-UDK-08."""
    assert outcome(lambda: judge_key(SAS, Service.BLOB, NOW)) == OK
    with pytest.raises(StorageError) as caught:
        judge_key(msgspec.structs.replace(SAS, **changes), Service.BLOB, NOW)
    assert reason in refused(caught, AUTHENTICATION_FAILED)


def test_a_key_of_seven_days_holds() -> None:
    week = msgspec.structs.replace(SAS, ske="2015-07-03T23:39:12Z")
    assert outcome(lambda: judge_key(week, Service.BLOB, NOW + LIFETIME_TICKS_MAX - 1)) == OK


def grant(sp: str, role: str, needs: Any, resource: str = "") -> Any:
    claim = SasClaim(
        NAME,
        SasKind.USER_DELEGATION,
        msgspec.structs.replace(SAS, sp=sp),
        CONTAINER,
        (Assignment("me", role, NAME, resource),),
    )
    return authorize(claim, needs, BLOB, PublicAccess.NONE, (), NOW, "::1", True, None)


def test_a_token_grants_what_both_it_and_its_delegator_may() -> None:
    """B-UDK-04."""
    reader, contributor = "Storage Blob Data Reader", "Storage Blob Data Contributor"
    assert grant("r", reader, permissions.READ).letters == "r"
    both = grant("rcw", contributor, permissions.WRITE)
    assert both.letters == "rcw" and both.may_overwrite
    assert not grant("rc", contributor, permissions.CREATE).may_overwrite
    assert grant("r", contributor, permissions.READ, "c1").letters == "r"
    for sp, role, needs, resource in [
        ("rw", reader, permissions.WRITE, ""),
        ("r", contributor, permissions.WRITE, ""),
        ("r", contributor, permissions.READ, "c2"),
        ("r", "Storage Blob Delegator", permissions.READ, ""),
    ]:
        with pytest.raises(StorageError) as caught:
            grant(sp, role, needs, resource)
        assert caught.value.row is AUTHORIZATION_PERMISSION_MISMATCH
