"""Security descriptors: bytes, SDDL, and the parts that requests name."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.semantics.file.permissions import check_sddl
from strongroom.services.file.names.permissions import DEFAULT_TEXT
from strongroom.wire.smb.information import security_descriptors as sd
from strongroom.wire.smb.information.sddl import parse_sddl, sddl
from strongroom.wire.smb.information.security_descriptors import (
    Ace,
    SecurityDescriptor,
    parts_of,
    read_descriptor,
    with_parts,
    write_descriptor,
)
from strongroom.wire.smb.information.sids import (
    NAMED,
    Sid,
    parse_sid,
    read_sid,
    sid_text,
    write_sid,
)
from strongroom.wire.smb.refusals import SmbRefusal
from strongroom.wire.smb.statuses import STATUS_INVALID_ACL
from strongroom.wire.smb.structures import MalformedMessage

ADMINS, SYSTEM = NAMED["BA"], NAMED["SY"]


def text_of(descriptor: SecurityDescriptor) -> str:
    return sddl(descriptor, owner=ADMINS, group=SYSTEM)


@pytest.mark.parametrize(
    "text",
    [
        DEFAULT_TEXT,
        "O:SYG:BAD:",
        "O:S-1-5-21-1-2-3-1001G:S-1-5-21-1-2-3-513D:PAI(A;OICIID;FA;;;WD)(D;;0x1f;;;AN)",
        "O:BAG:BAD:NO_ACCESS_CONTROL",
        "O:BAG:BAD:P(A;;FA;;;BA)S:AI(AU;SAFA;FR;;;WD)",
        "O:BAG:BAD:(A;;FA;;;BA)S:(ML;;NW;;;LW)",
        "O:BAG:BAD:(OA;CI;0x100;bf967aba-0de6-11d0-a285-00aa003049e2;;AU)",
        "O:BAG:BAD:(OA;;0x10;;bf967aba-0de6-11d0-a285-00aa003049e2;AU)S:(OU;;0x1;;;WD)",
        "O:S-1-0x123456789ABC-7G:SYD:AR(A;;GA;;;CO)",
        "O:LAG:DUD:(A;;GR;;;DA)",
    ],
)
def test_a_text_becomes_bytes_and_the_same_text_again(text: str) -> None:
    check_sddl(text)
    descriptor = parse_sddl(text)
    assert text_of(descriptor) == text
    data = memoryview(write_descriptor(descriptor))
    assert read_descriptor(data) == descriptor
    assert text_of(read_descriptor(data)) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('O:BAG:BAD:(XA;;FX;;;S-1-1-0;(@User.Title=="PM" && (a)))(A;;FA;;;SY)', "(A;;FA;;;SY)"),
        ("O:BAG:BAD:(A;;FA;;;QQ)(A;;FA;;;SY)", "(A;;FA;;;SY)"),
        ("O:BAG:BAD:(A;;0xfffffffff;;;SY)(A;;SDRC;;;SY)", "(A;;0x30000;;;SY)"),
        ("O:BAG:BAD:(A;OIOI;2032127;;;SY)", "(A;OI;FA;;;SY)"),
        ("O:QQG:BAD:(A;;FA;;;SY)", "(A;;FA;;;SY)"),
    ],
)
def test_entries_that_have_no_bytes_are_passed_over(text: str, shown: str) -> None:
    descriptor = parse_sddl(text)
    assert text_of(read_descriptor(memoryview(write_descriptor(descriptor)))) == (
        f"O:BAG:BAD:{shown}"
    )


@pytest.mark.parametrize("kind", ["D:", "D:S:"])
def test_a_list_that_is_too_long_for_bytes_is_refused(kind: str) -> None:
    longest = (0xFFFF - 8) // 20
    entries = "(A;;FA;;;WD)" * longest
    write_descriptor(parse_sddl(check_sddl(f"O:BAG:BA{kind}{entries}")))
    descriptor = parse_sddl(check_sddl(f"O:BAG:BA{kind}{entries}(A;;FA;;;WD)"))
    with pytest.raises(SmbRefusal) as refused:
        write_descriptor(descriptor)
    assert refused.value.status == STATUS_INVALID_ACL


@pytest.mark.parametrize("name", NAMED)
def test_each_name_has_a_sid(name: str) -> None:
    assert sid_text(NAMED[name]) == name
    assert parse_sid(name) == NAMED[name]
    assert read_sid(memoryview(write_sid(NAMED[name]))) == NAMED[name]


def test_a_known_sid_has_known_bytes() -> None:
    assert write_sid(ADMINS).hex() == "01020000000000052000000020020000"


@pytest.mark.parametrize(
    "text", ["S-1-5", "S-1-5-4294967296", "S-1-281474976710656-1", "S-1-5" + "-1" * 16, "S-1-x-1"]
)
def test_what_is_no_sid_has_none(text: str) -> None:
    assert parse_sid(text) is None


def test_numbers_of_a_sid_may_begin_with_zeros() -> None:
    assert parse_sid("S-1-05-032") == Sid(5, (32,))


_SIDS = st.builds(
    Sid,
    st.integers(0, (1 << 48) - 1),
    st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=15).map(tuple),
)
_GUIDS = st.none() | st.binary(min_size=16, max_size=16)
_MASKS = st.integers(0, (1 << 32) - 1)
_FLAGS = st.integers(0, 0xFF).map(lambda flags: flags & ~0x20)
_PLAIN = st.builds(Ace, st.sampled_from([0, 1, 2, 3]), _FLAGS, _MASKS, _SIDS)
_OBJECTS = st.builds(Ace, st.sampled_from([5, 6, 7, 8]), _FLAGS, _MASKS, _SIDS, _GUIDS, _GUIDS)
_ACLS = st.lists(_PLAIN | _OBJECTS, max_size=5).map(tuple)
_DESCRIPTORS = st.builds(
    SecurityDescriptor,
    owner=_SIDS,
    group=_SIDS,
    dacl=_ACLS,
    sacl=_ACLS,
    control=st.sampled_from([0x14, 0x1414, 0x3C14]),
)


@given(descriptor=_DESCRIPTORS)
def test_every_descriptor_survives_both_forms(descriptor: SecurityDescriptor) -> None:
    assert read_descriptor(memoryview(write_descriptor(descriptor))) == descriptor
    text = check_sddl(text_of(descriptor), 1 << 20)
    assert parse_sddl(text) == descriptor


def test_every_cut_and_mutation_of_a_descriptor_is_refused_or_read() -> None:
    text = "O:BAG:SYD:P(A;OICI;FA;;;WD)(OA;;0x10;;bf967aba-0de6-11d0-a285-00aa003049e2;AU)"
    data = write_descriptor(parse_sddl(text + "S:(AU;SA;FR;;;WD)"))
    for size in range(len(data)):
        with pytest.raises(MalformedMessage):
            read_descriptor(memoryview(data[:size]))
    chance = random.Random(1)
    for _ in range(3000):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            changed[chance.randrange(len(data))] = chance.choice(
                (0, 1, 2, 0xFF, chance.getrandbits(8))
            )
        try:
            found = read_descriptor(memoryview(changed))
        except MalformedMessage:
            continue
        parse_sddl(text_of(found))


@pytest.mark.parametrize(
    ("at", "form", "value"),
    [(0, "B", 2), (2, "H", 4), (4, "I", 19), (4, "I", 0xFFFFFFFF), (16, "I", 1000)],
)
def test_a_head_that_points_elsewhere_is_refused(at: int, form: str, value: int) -> None:
    data = bytearray(write_descriptor(parse_sddl(DEFAULT_TEXT)))
    struct.pack_into("<" + form, data, at, value)
    with pytest.raises(MalformedMessage):
        read_descriptor(memoryview(data))


WHOLE = parse_sddl("O:BAG:SYD:P(A;;FA;;;WD)S:P(AU;SA;FR;;;WD)(ML;;NW;;;LW)")


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (sd.OWNER, "O:BAG:SYD:NO_ACCESS_CONTROL"),
        (sd.DACL, "O:BAG:SYD:P(A;;FA;;;WD)"),
        (sd.LABEL, "O:BAG:SYD:NO_ACCESS_CONTROLS:(ML;;NW;;;LW)"),
        (sd.SACL, "O:BAG:SYD:NO_ACCESS_CONTROLS:P(AU;SA;FR;;;WD)(ML;;NW;;;LW)"),
    ],
)
def test_only_the_parts_that_are_asked_for_are_shown(wanted: int, text: str) -> None:
    found = parts_of(WHOLE, wanted)
    assert (found.owner is not None) == bool(wanted & sd.OWNER)
    assert found.group is None
    assert text_of(found) == text
    assert read_descriptor(memoryview(write_descriptor(found))) == found


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (0, "O:BAG:SYD:P(A;;FA;;;WD)S:P(AU;SA;FR;;;WD)(ML;;NW;;;LW)"),
        (sd.OWNER, "O:WDG:SYD:P(A;;FA;;;WD)S:P(AU;SA;FR;;;WD)(ML;;NW;;;LW)"),
        (sd.GROUP, "O:BAG:WDD:P(A;;FA;;;WD)S:P(AU;SA;FR;;;WD)(ML;;NW;;;LW)"),
        (sd.DACL, "O:BAG:SYD:AI(D;;FA;;;AN)S:P(AU;SA;FR;;;WD)(ML;;NW;;;LW)"),
        (sd.SACL, "O:BAG:SYD:P(A;;FA;;;WD)S:(ML;;NR;;;HI)"),
        (sd.LABEL, "O:BAG:SYD:P(A;;FA;;;WD)S:P(AU;SA;FR;;;WD)(ML;;NR;;;HI)"),
    ],
)
def test_only_the_parts_that_are_named_change(wanted: int, text: str) -> None:
    given_text = "O:WDG:WDD:AI(D;;FA;;;AN)S:(ML;;NR;;;HI)"
    assert text_of(with_parts(WHOLE, parse_sddl(given_text), wanted)) == text
