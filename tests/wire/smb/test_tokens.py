"""Tokens of SPNEGO and NTLM: strict DER, fields within their message, names in one form."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.wire.smb.setup import ntlm, spnego
from strongroom.wire.smb.setup.der import OCTET_STRING, read_value, read_values, write_value
from strongroom.wire.smb.structures import MalformedMessage
from tests.servers.smb.messages import (
    authenticate_message,
    first_token,
    last_token,
    negotiate_message,
)

OFFER = "601c06062b0601050502a0123010a00e300c060a2b06010401823702020a"  # [MS-SPNG], without hints


def test_the_server_offers_ntlmssp_alone() -> None:
    assert spnego.write_offer().hex() == OFFER


def test_a_first_token_is_read() -> None:
    found = spnego.read_first(first_token(b"token"))
    assert found.mechanisms == (spnego.NTLMSSP,)
    assert found.token == b"token"
    assert found.raw_mechanisms == write_value(0x30, spnego.NTLMSSP)


def test_a_later_token_is_read() -> None:
    found = spnego.read_next(last_token(b"token", bytes(16)))
    assert found.token == b"token"
    assert found.mic is not None and len(found.mic) == 16


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (spnego.write_response(0), "a1073005a0030a0100"),
        (
            spnego.write_response(1, names_mechanism=True),
            "a1153013a0030a0101a10c060a2b06010401823702020a",
        ),
        (spnego.write_response(0, mic=b"m" * 2), "a10d300ba0030a0100a30404026d6d"),
        (spnego.write_response(1, token=b"t"), "a10c300aa0030a0101a203040174"),
    ],
)
def test_answers_are_written_in_der(answer: bytes, expected: str) -> None:
    assert answer.hex() == expected


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"NTLMSSP\0",
        first_token(b"token")[:-1],
        first_token(b"token") + b"\0",
        first_token(b"token").replace(bytes.fromhex("2b0601050502"), bytes.fromhex("2b0601050503")),
        write_value(0x60, bytes.fromhex("06062b0601050502")),
        write_value(0x60, bytes.fromhex("06062b0601050502"), write_value(0xA0, write_value(0x30))),
    ],
)
def test_what_is_no_first_token_is_refused(token: bytes) -> None:
    with pytest.raises(MalformedMessage):
        spnego.read_first(token)


@pytest.mark.parametrize(
    "data",
    [
        "04",
        "0480",
        "048100",
        "04817f" + "00" * 127,
        "0482007f" + "00" * 127,
        "0484000000ff",
        "0405",
    ],
)
def test_lengths_have_one_form(data: str) -> None:
    with pytest.raises(MalformedMessage):
        read_values(bytes.fromhex(data))


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 65_535, 65_536])
def test_values_of_any_length_are_read_again(size: int) -> None:
    raw = write_value(OCTET_STRING, bytes(size))
    found = read_value(raw, OCTET_STRING)
    assert (len(found.contents), found.raw) == (size, raw)


def test_fields_out_of_their_order_are_refused() -> None:
    fields = [write_value(0xA0 + number, write_value(OCTET_STRING, b"x")) for number in (3, 2)]
    with pytest.raises(MalformedMessage):
        spnego.read_next(write_value(0xA1, write_value(0x30, *fields)))


@given(st.binary(max_size=80))
def test_any_bytes_are_a_token_or_refused(data: bytes) -> None:
    for read in (spnego.read_first, spnego.read_next, read_values, ntlm.message_type):
        try:
            read(data)
        except MalformedMessage:
            pass


def challenge(flags: int = 0xE208_8235) -> bytes:
    return ntlm.write_challenge(flags, b"12345678", "Server", 99)


def test_a_challenge_has_its_fields_where_it_says() -> None:
    raw = challenge()
    assert ntlm.message_type(raw) == ntlm.CHALLENGE
    assert raw[24:32] == b"12345678"
    length, _, at = struct.unpack_from("<HHI", raw, 12)
    assert raw[at : at + length].decode("utf-16-le") == "SERVER"
    length, _, at = struct.unpack_from("<HHI", raw, 40)
    pairs = raw[at : at + length]
    assert len(raw) == at + length and pairs.endswith(bytes(4))
    numbers = []
    while pairs:
        number, size = struct.unpack_from("<HH", pairs)
        numbers.append(number)
        pairs = pairs[4 + size :]
    assert numbers == [2, 1, 4, 3, 7, 0]


def test_a_challenge_agrees_only_to_what_was_asked_for() -> None:
    (flags,) = struct.unpack_from("<I", challenge(ntlm.REQUIRED), 20)
    assert flags & ntlm.REQUIRED == ntlm.REQUIRED
    assert not flags & (ntlm.KEY_EXCHANGE | ntlm.SEAL | 0x80)


def test_an_authenticate_message_is_read() -> None:
    raw, _ = authenticate_message(negotiate_message(), challenge(), "account", b"key")
    found = ntlm.read_authenticate(raw)
    assert (found.user, found.domain, found.workstation) == ("account", "WORKGROUP", "WORKSTATION")
    assert len(found.encrypted_key) == 16
    assert found.mic == raw[72:88]
    assert found.without_mic == raw[:72] + bytes(16) + raw[88:]
    assert "account" in repr(found) and found.encrypted_key.hex() not in repr(found)


@pytest.mark.parametrize("at", range(12, 60, 8))
def test_a_field_outside_of_its_message_is_refused(at: int) -> None:
    raw = bytearray(authenticate_message(negotiate_message(), challenge(), "account", b"key")[0])
    struct.pack_into("<HHI", raw, at, 1, 1, len(raw))
    with pytest.raises(MalformedMessage):
        ntlm.read_authenticate(bytes(raw))


def test_without_room_there_is_no_mic() -> None:
    fields = b"".join(struct.pack("<HHI", 0, 0, 64) for _ in range(4))
    fields += struct.pack("<HHI", 4, 4, 64) + struct.pack("<HHI", 0, 0, 64)
    raw = ntlm.SIGNATURE + struct.pack("<I", 3) + fields + struct.pack("<I", 1) + bytes(30)
    found = ntlm.read_authenticate(raw)
    assert found.mic is None and found.without_mic == raw


def test_names_are_in_the_form_that_the_flags_say() -> None:
    fields = b"".join(struct.pack("<HHI", 0, 0, 64) for _ in range(3))
    fields += struct.pack("<HHI", 2, 2, 64) + bytes(16)
    for flags, raw_name, name in (
        (0, b"ab", "ab"),
        (1, b"a\0", "a"),
        (1, b"\0\xd8", None),
        (0, b"\xff\xff", None),
    ):
        raw = ntlm.SIGNATURE + struct.pack("<I", 3) + fields + struct.pack("<I", flags) + raw_name
        if name is None:
            with pytest.raises(MalformedMessage):
                ntlm.read_authenticate(raw)
        else:
            assert ntlm.read_authenticate(raw).user == name


@given(st.binary(max_size=120))
def test_any_bytes_are_an_authenticate_message_or_refused(data: bytes) -> None:
    for raw in (data, ntlm.SIGNATURE + b"\3\0\0\0" + data):
        try:
            ntlm.read_authenticate(raw)
        except MalformedMessage:
            pass
