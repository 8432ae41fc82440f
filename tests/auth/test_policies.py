"""Stored access policies merged with tokens, and the times of a token."""

from __future__ import annotations

import pytest

from strongroom.auth.policies import EffectiveRights, judge_times, resolve
from strongroom.auth.sas import Sas
from strongroom.errors.core import (
    AUTHENTICATION_FAILED,
    INVALID_QUERY_PARAMETER_VALUE,
    StorageError,
)
from strongroom.times import parse_iso8601
from strongroom.values import TICKS_PER_S, AccessPolicy
from tests.auth.signing import refused
from tests.refusals import OK, outcome

SV = "2021-12-02"
START, EXPIRY = "2020-01-01", "2021-01-01T00:00:00.0000000Z"
FIRST, LAST = parse_iso8601(START) or 0, parse_iso8601(EXPIRY) or 0
FULL = AccessPolicy("full", START, EXPIRY, "rw")
POLICIES = (
    AccessPolicy("empty"),
    FULL,
    AccessPolicy("times", START, EXPIRY),
    AccessPolicy("letters", None, None, "rw"),
    AccessPolicy("broken", None, "whenever", "r"),
)


@pytest.mark.parametrize(
    "sas",
    [
        Sas(sv=SV, sp="rw", st=START, se=EXPIRY),
        Sas(sv=SV, si="full"),
        Sas(sv=SV, si="times", sp="rw"),
        Sas(sv=SV, si="letters", st=START, se=EXPIRY),
        Sas(sv=SV, si="empty", sp="rw", st=START, se=EXPIRY),
    ],
)
def test_each_field_from_where_it_stands(sas: Sas) -> None:
    assert resolve(sas, POLICIES) == EffectiveRights("rw", FIRST, LAST)


def test_the_start_may_be_absent() -> None:
    assert resolve(Sas(sv=SV, sp="r", se=EXPIRY), ()) == EffectiveRights("r", None, LAST)


@pytest.mark.parametrize(
    ("sas", "name"),
    [
        (Sas(sv=SV, si="full", sp="r"), "sp"),
        (Sas(sv=SV, si="full", st=START), "st"),
        (Sas(sv=SV, si="full", se=EXPIRY), "se"),
        (Sas(sv=SV, si="letters", sp="rw", se=EXPIRY), "sp"),
    ],
)
def test_a_field_in_both_is_400(sas: Sas, name: str) -> None:
    with pytest.raises(StorageError) as caught:
        resolve(sas, POLICIES)
    refused(caught, INVALID_QUERY_PARAMETER_VALUE)
    extras = dict(caught.value.extras)
    assert extras["QueryParameterName"] == name
    assert f"'{sas.si}'" in extras["Reason"]


@pytest.mark.parametrize(
    ("sas", "says"),
    [
        (Sas(sv=SV, sp="r"), "no expiry"),
        (Sas(sv=SV, se=EXPIRY), "no permission"),
        (Sas(sv=SV), "no permission"),
        (Sas(sv=SV, si="empty", sp="r"), "no expiry"),
        (Sas(sv=SV, si="empty", se=EXPIRY), "no permission"),
        (Sas(sv=SV, si="times"), "no permission"),
        (Sas(sv=SV, si="letters"), "no expiry"),
        (
            Sas(sv=SV, si="missing"),
            "SAS identifier cannot be found for specified signed identifier",
        ),
        (Sas(sv=SV, si="FULL"), "'FULL'"),
        (Sas(sv=SV, si="broken"), "'whenever'"),
    ],
)
def test_what_stands_nowhere_is_403(sas: Sas, says: str) -> None:
    with pytest.raises(StorageError) as caught:
        resolve(sas, POLICIES)
    assert says in refused(caught, AUTHENTICATION_FAILED)


@pytest.mark.parametrize("start", [FIRST, None])
@pytest.mark.parametrize("now", [FIRST, FIRST + 1, LAST - 1])
def test_from_start_up_to_expiry(now: int, start: int | None) -> None:
    assert outcome(lambda: judge_times(Sas(sv=SV), EffectiveRights("r", start, LAST), now)) == OK


@pytest.mark.parametrize(
    ("now", "says"),
    [(FIRST - 1, "not valid yet"), (LAST, "has expired"), (LAST + 1, "has expired")],
)
def test_too_early_and_too_late_say_which_and_when(now: int, says: str) -> None:
    with pytest.raises(StorageError) as caught:
        judge_times(Sas(sv=SV), EffectiveRights("r", FIRST, LAST), now)
    detail = refused(caught, AUTHENTICATION_FAILED)
    assert says in detail
    assert "Start [2020-01-01T00:00:00.0000000Z]" in detail
    assert "Expiry [2021-01-01T00:00:00.0000000Z]" in detail
    assert "Current [20" in detail


@pytest.mark.parametrize("sv", ["", "2011-08-18"])
def test_old_tokens_without_a_policy_hold_for_an_hour(sv: str) -> None:
    hour = 3600 * TICKS_PER_S
    judge_times(Sas(sv=sv), EffectiveRights("r", None, FIRST + hour), FIRST)
    judge_times(Sas(sv=sv), EffectiveRights("r", FIRST, FIRST + hour), FIRST)
    judge_times(Sas(sv=sv, si="full"), EffectiveRights("r", FIRST, LAST), FIRST)
    for start in (None, FIRST):
        with pytest.raises(StorageError) as caught:
            judge_times(Sas(sv=sv), EffectiveRights("r", start, FIRST + hour + 1), FIRST)
        assert "one hour" in refused(caught, AUTHENTICATION_FAILED)
