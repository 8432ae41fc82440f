"""lsarpc: the names of SIDs and the SIDs of names, read and written in NDR.

Sources: [MS-LSAT] sections 2.2 and 3.1.4; [MS-LSAD] section 3.1.4.4.
"""

from __future__ import annotations

import random
import struct
import uuid

import pytest

from strongroom.wire.smb.information.sids import NAMED, Sid, write_sid
from strongroom.wire.smb.rpc.calls import Inventory
from strongroom.wire.smb.rpc.interfaces import INTERFACES
from strongroom.wire.smb.rpc.ndr import NdrReader
from strongroom.wire.smb.rpc.pipe import FRAGMENT_BYTES, RpcPipe
from strongroom.wire.smb.rpc.principals import FIXED, own_principals, with_name, with_sid
from strongroom.wire.smb.structures import MalformedMessage
from tests.wire.smb.test_pipe import bind, call, fault, result

LSARPC = uuid.UUID("12345778-1234-abcd-ef00-0123456789ab").bytes_le + struct.pack("<I", 0)
INVENTORY = Inventory("STRONGROOM", (), "orders")
OWN = own_principals("STRONGROOM", "orders")
STRANGER = Sid(5, (21, 1, 2, 3, 4))
CONTEXT_MISMATCH = 0x1C00001A
BAD_STUB = 0x6F7


def bound() -> RpcPipe:
    pipe = RpcPipe("lsarpc")
    pipe.write(bind(LSARPC), INVENTORY)
    answer, _ = pipe.read(4096)
    assert answer[2] == 12
    return pipe


def called(number: int, stub: bytes) -> bytes:
    pipe = bound()
    pipe.write(call(number, stub), INVENTORY)
    return result(pipe)


def refused(number: int, stub: bytes) -> int:
    pipe = bound()
    pipe.write(call(number, stub), INVENTORY)
    return fault(pipe)


HANDLE = called(44, bytes(4))[:20]


def string(text: str) -> bytes:
    data = text.encode("utf-16-le")
    made = struct.pack("<III", len(data) // 2, 0, len(data) // 2) + data
    return made + bytes(-len(made) % 4)


def sids_stub(*sids: Sid, handle: bytes = HANDLE) -> bytes:
    made = handle + struct.pack("<III", len(sids), 1, len(sids)) + b"\1\0\0\0" * len(sids)
    for sid in sids:
        made += struct.pack("<I", len(sid.sub_authorities)) + write_sid(sid)
    return made + struct.pack("<IIHHI", 0, 0, 1, 0, 0)


def names_stub(*names: str, handle: bytes = HANDLE) -> bytes:
    made = handle + struct.pack("<II", len(names), len(names))
    for name in names:
        made += struct.pack("<HHI", 2 * len(name), 2 * len(name), 1)
    made += b"".join(map(string, names))
    return made + struct.pack("<IIHHI", 0, 0, 1, 0, 0)


def domains(reader: NdrReader) -> list[str]:
    """Read the referenced domains of an answer: their names."""
    assert reader.number()
    count = reader.number()
    has_array = reader.number()
    reader.number()
    assert bool(has_array) == bool(count)
    if not count:
        return []
    assert reader.number() == count
    for _ in range(count):
        reader.raw(12, 4)
    names = []
    for _ in range(count):
        names.append(reader.string())
        reader.sid()
    return names


def translated(stub: bytes, *, has_flags: bool) -> tuple[list[tuple[str, int, str]], int, int]:
    """Read the answer of a look-up of SIDs: (domain, kind, name) each; the count; the status."""
    reader = NdrReader(stub)
    known = domains(reader)
    count, _ = reader.number(), reader.number()
    assert reader.number() == count
    rows = []
    for _ in range(count):
        kind = reader.short()
        reader.raw(8, 4)
        at = reader.number()
        rows.append((kind, at))
        assert not has_flags or reader.number() == 0
    found = [(known[at] if at < len(known) else "", kind, reader.string()) for kind, at in rows]
    return found, reader.number(), reader.number()


@pytest.mark.parametrize("number", [15, 57, 76])
def test_sids_have_names(number: int) -> None:
    wanted = (NAMED["BA"], NAMED["WD"], STRANGER, NAMED["LA"])
    handle = b"" if number == 76 else HANDLE
    stub = called(number, sids_stub(*wanted, handle=handle))
    found, mapped, status = translated(stub, has_flags=number != 15)
    assert found == [
        ("BUILTIN", 4, "Administrators"),
        ("", 5, "Everyone"),
        ("", 8, "S-1-5-21-1-2-3-4"),
        ("STRONGROOM", 1, "orders"),
    ]
    assert (mapped, status) == (3, 0x107)


@pytest.mark.parametrize(
    ("sids", "expected"),
    [
        ((NAMED["SY"],), (1, 0)),
        ((STRANGER,), (0, 0xC0000073)),
        ((NAMED["SY"], STRANGER), (1, 0x107)),
    ],
)
def test_the_status_says_how_many_were_mapped(
    sids: tuple[Sid, ...], expected: tuple[int, int]
) -> None:
    assert translated(called(57, sids_stub(*sids)), has_flags=True)[1:] == expected


@pytest.mark.parametrize(("number", "has_flags"), [(14, False), (58, True)])
def test_names_have_relative_ids(number: int, *, has_flags: bool) -> None:
    names = (r"strongroom\ORDERS", "administrators", "nobody", "STRONGROOM")
    reader = NdrReader(called(number, names_stub(*names)))
    known = domains(reader)
    assert (reader.number(), bool(reader.number()), reader.number()) == (4, True, 4)
    found = []
    for _ in range(4):
        kind, relative, at = reader.short(), reader.number(), reader.number()
        assert not has_flags or reader.number() == 0
        found.append((kind, relative, known[at] if at < 2 else ""))
    none = 0xFFFF_FFFF
    assert found == [
        (1, 500, "STRONGROOM"), (4, 544, "BUILTIN"), (8, none, ""), (3, none, "STRONGROOM"),
    ]  # fmt: skip
    assert (reader.number(), reader.number()) == (3, 0x107)


@pytest.mark.parametrize("number", [68, 77])
def test_names_have_sids(number: int) -> None:
    handle = b"" if number == 77 else HANDLE
    reader = NdrReader(called(number, names_stub("everyone", "nobody", handle=handle)))
    domains(reader)
    assert (reader.number(), bool(reader.number()), reader.number()) == (2, True, 2)
    rows = [(reader.short(), *(reader.number() for _ in range(3))) for _ in range(2)]
    assert [row[0] for row in rows] == [5, 8]
    assert bool(rows[0][1]) and not rows[1][1]
    assert reader.sid() == NAMED["WD"]
    assert (reader.number(), reader.number()) == (1, 0x107)


def test_the_account_domain_is_the_server_and_the_primary_one_a_workgroup() -> None:
    for level, name, has_sid in ((5, "STRONGROOM", True), (3, "WORKGROUP", False)):
        reader = NdrReader(called(46, HANDLE + struct.pack("<H", level)))
        assert reader.number() and reader.short() == level
        reader.raw(8, 4)
        assert bool(reader.number()) == has_sid
        assert reader.string() == name
        assert not has_sid or reader.sid() == Sid(5, (21, 0, 0, 0))
        assert reader.number() == 0
    assert called(7, HANDLE + b"\x63\0") == struct.pack("<II", 0, 0xC000000D)


def test_the_caller_learns_its_name() -> None:
    reader = NdrReader(called(45, struct.pack("<III", 0, 0, 1) + bytes(4)))
    assert reader.number()
    reader.raw(8, 4)
    assert reader.string() == "orders"
    assert reader.number() and reader.number()
    reader.raw(8, 4)
    assert reader.string() == "STRONGROOM"
    assert reader.number() == 0


def test_a_handle_is_checked_and_closed() -> None:
    assert called(0, HANDLE) == bytes(24)
    other = bytes(19) + b"\1"
    for number, stub in (
        (0, other),
        (7, other + b"\5\0"),
        (15, sids_stub(NAMED["SY"], handle=other)),
        (14, names_stub("SYSTEM", handle=other)),
    ):
        assert refused(number, stub) == CONTEXT_MISMATCH


def test_no_stub_is_read_beyond_its_end() -> None:
    stubs = {
        0: HANDLE,
        7: HANDLE + b"\5\0",
        15: sids_stub(NAMED["SY"], NAMED["BA"])[:-16],
        14: names_stub("SYSTEM", "a")[:-18],
        45: struct.pack("<III", 0, 0, 0),
    }
    for number, stub in stubs.items():
        called(number, stub)
        for end in range(len(stub)):
            assert refused(number, stub[:end]) == BAD_STUB, (number, end)


@pytest.mark.parametrize(
    "stub",
    [
        HANDLE + struct.pack("<III", 2, 1, 1) + bytes(100),
        HANDLE + struct.pack("<III", 1001, 1, 1001) + b"\1\0\0\0" * 1001,
        HANDLE + struct.pack("<III", 0xFFFFFFFF, 1, 0xFFFFFFFF) + bytes(100),
        HANDLE + struct.pack("<IIII", 1, 1, 1, 0) + bytes(100),
        HANDLE + struct.pack("<IIIII", 1, 1, 1, 1, 2) + write_sid(NAMED["SY"]),
    ],
)
def test_lists_that_contradict_themselves_are_refused(stub: bytes) -> None:
    assert refused(15, stub) == BAD_STUB


def test_no_mutation_raises_anything_but_a_refusal() -> None:
    conversation = b"".join(
        (
            bind(LSARPC),
            call(57, sids_stub(NAMED["SY"], STRANGER)),
            call(68, names_stub("SYSTEM", r"BUILTIN\Users")),
            call(46, HANDLE + b"\5\0"),
            call(45, struct.pack("<III", 0, 0, 0)),
        )
    )
    chance = random.Random(11)
    for _ in range(3000):
        changed = bytearray(conversation)
        for _ in range(chance.randint(1, 5)):
            changed[chance.randrange(len(changed))] = chance.getrandbits(8)
        pipe = RpcPipe("lsarpc")
        try:
            pipe.write(changed, INVENTORY)
        except MalformedMessage:
            continue
        while pipe.unread_bytes:
            assert len(pipe.read(FRAGMENT_BYTES)[0]) <= FRAGMENT_BYTES


def test_each_principal_is_found_by_its_name_and_its_sid() -> None:
    for one in (*FIXED, *OWN):
        assert with_sid(one.sid, OWN) == one
        assert with_name(rf"{one.domain.name}\{one.name}".lstrip("\\").upper(), OWN) == one
    assert with_sid(STRANGER, OWN) is None
    assert with_name(r"BUILTIN\SYSTEM", OWN) is None
    assert with_name("", OWN) is None


def test_every_served_pipe_has_an_interface_of_its_own() -> None:
    assert len({one.syntax for one in INTERFACES.values()}) == len(INTERFACES) == 3
