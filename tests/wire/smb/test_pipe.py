"""Pipes: a client binds, calls, and reads results; anything else gets a fault."""

from __future__ import annotations

import random
import struct
import uuid
from contextlib import suppress

import pytest

from strongroom.wire.smb.rpc.calls import Inventory, ListedShare
from strongroom.wire.smb.rpc.ndr import NdrReader
from strongroom.wire.smb.rpc.pipe import CALL_BYTES_MAX, FRAGMENT_BYTES, RpcPipe
from strongroom.wire.smb.structures import MalformedMessage

SRVSVC = uuid.UUID("4b324fc8-1670-01d3-1278-5a47bf6ee188").bytes_le + struct.pack("<I", 3)
WKSSVC = uuid.UUID("6bffd098-a112-3610-9833-46c3f87e345a").bytes_le + struct.pack("<I", 1)
NDR = uuid.UUID("8a885d04-1ceb-11c9-9fe8-08002b104860").bytes_le + struct.pack("<I", 2)
INVENTORY = Inventory("strongroom", (ListedShare("docs", "papers"), ListedShare("b")))
SHARES = [("docs", 0, "papers"), ("b", 0, ""), ("IPC$", 0x80000003, "Remote IPC")]


def pdu(kind: int, body: bytes, flags: int = 3, call_id: int = 1, auth: int = 0) -> bytes:
    return struct.pack("<BBBBIHHI", 5, 0, kind, flags, 0x10, 16 + len(body), auth, call_id) + body


def bind(
    interface: bytes = SRVSVC, syntax: bytes = NDR, kind: int = 11, received: int = 4280
) -> bytes:
    context = struct.pack("<HBx", 0, 1) + interface + syntax
    return pdu(kind, struct.pack("<HHIB3x", 4280, received, 0, 1) + context)


def call(number: int, stub: bytes, flags: int = 3, context: int = 0) -> bytes:
    return pdu(0, struct.pack("<IHH", len(stub), context, number) + stub, flags)


def text(value: str) -> bytes:
    data = (value + "\0").encode("utf-16-le")
    made = struct.pack("<III", len(data) // 2, 0, len(data) // 2) + data
    return made + bytes(-len(made) % 4)


SERVER = struct.pack("<I", 1) + text("\\\\server")


def enum_stub(level: int) -> bytes:
    return SERVER + struct.pack("<IIIIIII", level, level, 1, 0, 0, 0xFFFFFFFF, 0)


def bound(name: str = "srvsvc", interface: bytes = SRVSVC, received: int = 4280) -> RpcPipe:
    pipe = RpcPipe(name)
    pipe.write(bind(interface, received=received), INVENTORY)
    answer, more = pipe.read(4096)
    assert (answer[2], more) == (12, False)
    return pipe


def result(pipe: RpcPipe) -> bytes:
    """The stub of a result, collected from its fragments."""
    stub = b""
    while True:
        answer, more = pipe.read(65536)
        assert (answer[2], more) == (2, False)
        assert struct.unpack_from("<H", answer, 8) == (len(answer),)
        assert bool(answer[3] & 1) == (not stub)
        stub += answer[24:]
        if answer[3] & 2:
            return stub


def fault(pipe: RpcPipe) -> int:
    answer, _ = pipe.read(4096)
    assert answer[2] == 3
    (status,) = struct.unpack_from("<I", answer, 24)
    return int(status)


def test_a_bind_is_acknowledged_with_the_pipe_and_the_syntax() -> None:
    pipe = RpcPipe("srvsvc")
    pipe.write(bind(), INVENTORY)
    answer, _ = pipe.read(4096)
    assert answer[2] == 12
    assert answer[24:40] == struct.pack("<H", 13) + b"\\PIPE\\srvsvc\0" + b"\0"
    assert answer[40:] == struct.pack("<B3xHH", 1, 0, 0) + NDR


@pytest.mark.parametrize(
    ("interface", "syntax", "outcome"), [(WKSSVC, NDR, (2, 1)), (SRVSVC, SRVSVC, (2, 2))]
)
def test_another_interface_or_syntax_is_rejected(
    interface: bytes, syntax: bytes, outcome: tuple[int, int]
) -> None:
    pipe = RpcPipe("srvsvc")
    pipe.write(bind(interface, syntax), INVENTORY)
    answer, _ = pipe.read(4096)
    assert struct.unpack_from("<HH", answer, 44) == outcome
    pipe.write(call(15, enum_stub(1)), INVENTORY)
    assert fault(pipe) == 0x1C010003


def test_a_bind_with_authentication_is_refused() -> None:
    pipe = RpcPipe("srvsvc")
    pipe.write(pdu(11, bytes(40), auth=16), INVENTORY)
    assert pipe.read(4096)[0][2] == 13


def test_an_altered_context_is_answered_in_kind() -> None:
    pipe = RpcPipe("srvsvc")
    pipe.write(bind(kind=14), INVENTORY)
    assert pipe.read(4096)[0][2] == 15


def test_shares_are_listed() -> None:
    pipe = bound()
    pipe.write(call(15, enum_stub(1)), INVENTORY)
    out = NdrReader(result(pipe))
    assert [out.number() for _ in range(2)] == [1, 1]
    assert out.number()
    assert out.number() == 3
    assert out.number()
    assert out.number() == 3
    heads = [(out.number(), out.number(), out.number()) for _ in range(3)]
    assert len({pointer for head in heads for pointer in (head[0], head[2])}) == 6
    found = [(out.string(), head[1], out.string()) for head in heads]
    assert found == SHARES
    assert [out.number() for _ in range(3)] == [3, 0, 0]


@pytest.mark.parametrize("level", [0, 1, 2, 501, 502])
def test_every_level_of_the_listing_ends_with_success(level: int) -> None:
    pipe = bound()
    pipe.write(call(15, enum_stub(level)), INVENTORY)
    assert result(pipe)[-12:] == struct.pack("<III", 3, 0, 0)


def test_an_unknown_level_of_the_listing_is_an_error_within_the_result() -> None:
    pipe = bound()
    pipe.write(call(15, enum_stub(7)), INVENTORY)
    assert result(pipe)[-4:] == struct.pack("<I", 124)


@pytest.mark.parametrize(
    ("name", "level", "status"),
    [
        ("DOCS", 1, 0), ("docs", 2, 0), ("docs", 501, 0), ("docs", 502, 0), ("docs", 1005, 0),
        ("ipc$", 1, 0), ("none", 1, 2310), ("docs", 3, 124),
    ],
)  # fmt: skip
def test_one_share_is_shown_whatever_the_case_of_its_name(
    name: str, level: int, status: int
) -> None:
    pipe = bound()
    pipe.write(call(16, SERVER + text(name) + struct.pack("<I", level)), INVENTORY)
    found = result(pipe)
    assert found[:4] == struct.pack("<I", level)
    assert found[-4:] == struct.pack("<I", status)
    assert (found[4:8] == bytes(4)) == (status != 0)


@pytest.mark.parametrize(("level", "status"), [(100, 0), (101, 0), (102, 124)])
def test_the_server_shows_its_name(level: int, status: int) -> None:
    pipe = bound()
    pipe.write(call(21, SERVER + struct.pack("<I", level)), INVENTORY)
    found = result(pipe)
    assert found[-4:] == struct.pack("<I", status)
    assert ("strongroom".encode("utf-16-le") in found) == (status == 0)


@pytest.mark.parametrize(("level", "status"), [(100, 0), (101, 124)])
def test_the_workstation_shows_its_name(level: int, status: int) -> None:
    pipe = bound("wkssvc", WKSSVC)
    pipe.write(call(0, SERVER + struct.pack("<I", level)), INVENTORY)
    assert result(pipe)[-4:] == struct.pack("<I", status)


def test_calls_that_are_not_served_get_a_fault() -> None:
    pipe = bound()
    pipe.write(call(99, b""), INVENTORY)
    assert fault(pipe) == 0x1C010002
    pipe.write(call(15, enum_stub(1), context=1), INVENTORY)
    assert fault(pipe) == 0x1C010003
    for cut in range(len(SERVER + text("docs")) + 4):
        stub = (SERVER + text("docs") + struct.pack("<I", 1))[:cut]
        pipe.write(call(16, stub), INVENTORY)
        assert fault(pipe) == 0x6F7


def test_a_call_may_come_byte_by_byte_and_in_fragments() -> None:
    pipe = bound()
    stub = enum_stub(1)
    for byte in call(15, stub[:20], flags=1) + call(15, stub[20:], flags=2):
        pipe.write(bytes((byte,)), INVENTORY)
    assert result(pipe)[-4:] == bytes(4)


def test_a_large_result_comes_in_fragments() -> None:
    many = Inventory("s", tuple(ListedShare(f"share-{index}") for index in range(500)))
    pipe = bound(received=2000)
    pipe.write(call(15, enum_stub(1)), many)
    assert pipe.unread_bytes <= 2000
    assert result(pipe)[-12:] == struct.pack("<III", 501, 0, 0)


def test_a_short_read_leaves_the_rest_and_no_read_crosses_results() -> None:
    pipe = bound()
    pipe.write(call(15, enum_stub(1)) * 2, INVENTORY)
    size = pipe.unread_bytes
    first, more = pipe.read(10)
    assert (len(first), more, pipe.unread_bytes) == (10, True, size - 10)
    rest, more = pipe.read(65536)
    assert (len(rest), more, pipe.unread_bytes) == (size - 10, False, size)
    assert pipe.read(65536)[0] == first + rest
    assert pipe.read(65536) == (b"", False)


@pytest.mark.parametrize(
    "data",
    [
        b"\4" + bytes(15),
        pdu(0, b"")[:4] + b"\0" + pdu(0, b"")[5:],
        pdu(0, b"")[:8] + b"\x0f\0" + pdu(0, b"")[10:],
        pdu(0, b"1234567"),
        pdu(11, bytes(8)),
        pdu(11, struct.pack("<HHIB3x", 1, 1, 0, 17)),
        pdu(11, struct.pack("<HHIB3x", 1, 1, 0, 1)),
    ],
)
def test_what_is_no_pdu_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        RpcPipe("srvsvc").write(data, INVENTORY)


def test_a_call_without_end_is_refused() -> None:
    pipe = bound()
    for index in range(CALL_BYTES_MAX // 4000):
        pipe.write(call(15, bytes(4000), flags=0 if index else 1), INVENTORY)
    with pytest.raises(MalformedMessage):
        pipe.write(call(15, bytes(4000), flags=0), INVENTORY)


@pytest.mark.parametrize(
    "refused",
    [
        b"\4" + bytes(1 << 20),
        bind() * 20_000,
        call(15, bytes(60_000), flags=0),
    ],
    ids=["no PDU", "calls whose results are not read", "a call without end"],
)
def test_bytes_that_were_refused_take_no_memory(refused: bytes) -> None:
    pipe = bound()
    held = []
    for _ in range(6):
        with suppress(MalformedMessage):
            pipe.write(refused, INVENTORY)
        held.append(len(pipe._incoming) + len(pipe._stub))
    assert max(held) <= CALL_BYTES_MAX


def test_a_pipe_serves_on_after_a_refusal() -> None:
    pipe = bound()
    with pytest.raises(MalformedMessage):
        pipe.write(b"\4" + bytes(15), INVENTORY)
    pipe.write(call(15, enum_stub(1)), INVENTORY)
    assert result(pipe)[-4:] == bytes(4)


def test_no_mutation_raises_anything_but_a_refusal() -> None:
    conversation = bind() + call(15, enum_stub(1)) + call(16, SERVER + text("docs") + bytes(4))
    chance = random.Random(7)
    for _ in range(2000):
        changed = bytearray(conversation)
        for _ in range(chance.randint(1, 5)):
            changed[chance.randrange(len(changed))] = chance.getrandbits(8)
        pipe = RpcPipe("srvsvc")
        try:
            pipe.write(changed, INVENTORY)
        except MalformedMessage:
            continue
        while pipe.unread_bytes:
            assert len(pipe.read(FRAGMENT_BYTES)[0]) <= FRAGMENT_BYTES
