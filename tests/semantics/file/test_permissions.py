"""SDDL: texts of Microsoft's pages are accepted; texts without a part or beyond a bound are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.file import permissions
from tests.refusals import OK, outcome

INVALID = "400 FileInvalidPermission"
HEAD = "O:SYG:SYD:"
ACE = "(A;OICI;FA;;;WD)"

LEGAL = (
    "O:S-1-5-21-2127521184-1604012920-1887927527-21560751G:S-1-5-21-2127521184-1604012920-"
    "1887927527-513D:AI(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;S-1-5-21-397955417-626881126-"
    "188441444-3053964)",
    "O:BAG:BAD:P(A;CI;GRGX;;;WD)(D;;FW;;;AN)",
    "O:SYG:SYD:",
    "O:SYG:SYD:NO_ACCESS_CONTROL",
    "O:SYG:SYD:PARAI(A;OICIIO;GA;;;CO)S:(AU;SAFA;WDWO;;;WD)",
    "O:SYG:SYD:(OA;;RP;6da8a4ff-0e52-11d0-a286-00aa003049e2;;AU)",
    'O:SYG:SYD:(XA;;FX;;;WD;(@User.Title=="PM"))',
    'O:SYG:SYD:(XA;;FX;;;S-1-1-0;(@User.Title=="PM" && (@User.Div=="F" || @User.Div=="S")))',
    "O:SYG:SYD:(A;;1179785;;;BU)S:(ML;;NW;;;LW)",
)
ILLEGAL = (
    "", "D:(A;;FA;;;SY)", "O:SYD:(A;;FA;;;SY)", "O:SYG:SY", "G:SYO:SYD:", "O:SYG:SYS:",
    "o:syg:syd:", "O:SYG:SYD:(XA;;FX;;;WD;((a))", 'O:SYG:SYD:(XA;;FX;;;WD;(a)))',
    "O:SYG:SYD:(A;;FA;;;SY", "O:SYG:SYD:(A;;FA;;SY)", "O:SYG:SYD:(Q;;FA;;;SY)",
    "O:SYG:SYD:(A;XX;FA;;;SY)", "O:SYG:SYD:(A;;ZZ;;;SY)", "O:SYG:SYD:(A;;FA;;;)",
    "O:S-1G:SYD:", "O:S-2-5-18G:SYD:", "O:S-1-5" + "-1" * 16 + "G:SYD:", "O:SYG:SYD:(A;;FA;;;SY) ",
    "O:SYG:SYD:S:x", "O:SYG:SYD:(A;;FA;;;SÝ)", "O:SYG:SYD:(A;;0x123456789;;;SY)",
    "O:SYG:SYD:D:",
)  # fmt: skip


@pytest.mark.parametrize("text", LEGAL, ids=range(len(LEGAL)))
def test_a_security_descriptor_is_kept_as_it_is(text: str) -> None:
    assert permissions.check_sddl(text) == text


@pytest.mark.parametrize("text", ILLEGAL, ids=range(len(ILLEGAL)))
def test_what_is_no_security_descriptor_is_refused(text: str) -> None:
    assert outcome(lambda: permissions.check_sddl(text)) == INVALID


@pytest.mark.parametrize("limit", [permissions.HEADER_BYTES_MAX, permissions.PERMISSION_BYTES_MAX])
def test_the_size_is_bounded(limit: int) -> None:
    count = (limit - len(HEAD)) // len(ACE)
    assert outcome(lambda: permissions.check_sddl(HEAD + ACE * count, limit)) == OK
    assert outcome(lambda: permissions.check_sddl(HEAD + ACE * (count + 1), limit)) == INVALID


@given(st.text("OGDS:();ASYW0x1-ACI", max_size=60))
def test_any_text_is_accepted_or_refused(text: str) -> None:
    assert outcome(lambda: permissions.check_sddl(HEAD + text)) in (OK, INVALID)


@pytest.mark.parametrize(
    "unit",
    [
        "(A;", "(A;;GAGAGA", "(XA;;FX;;;WD;(" + "(" * 50, "S-1-5-" * 20, "CIOI" * 40,
        "(XA;;;;;WD;a(b)",
    ],
    ids=range(6),
)  # fmt: skip
def test_a_hostile_text_is_refused_without_going_back(unit: str) -> None:
    text = HEAD + unit * (60_000 // len(unit))
    assert outcome(lambda: permissions.check_sddl(text)) == INVALID


@pytest.mark.parametrize(
    ("text", "is_legal"),
    [
        ("4161934923894236379*8910472911412325", True), ("0*0", True), ("1", False), ("", False),
        ("1*", False), ("1*2*3", False), ("a*b", False), ("1 * 2", False), ("-1*2", False),
    ],
)  # fmt: skip
def test_a_key_is_two_numbers(text: str, is_legal: bool) -> None:
    found = outcome(lambda: permissions.check_key(text))
    assert found == (OK if is_legal else "400 FileInvalidPermissionKey")
