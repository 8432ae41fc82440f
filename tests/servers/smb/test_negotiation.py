"""The choices of the server: the greatest common dialect, the client's first common algorithms."""

from __future__ import annotations

import struct

import pytest

from strongroom.errors.file import STATUS_INVALID_PARAMETER
from strongroom.servers.smb.messages.negotiation import answer_contexts, negotiated
from strongroom.servers.smb.refusals import SmbError
from strongroom.wire.smb.setup.negotiate import NegotiateRequest
from strongroom.wire.smb.setup.negotiate_contexts import NegotiateContext
from strongroom.wire.smb.statuses import STATUS_NO_PREAUTH_HASH_OVERLAP, STATUS_NOT_SUPPORTED
from strongroom.wire.smb.structures import MalformedMessage

GUID = bytes(range(16))
PREAUTH = NegotiateContext(1, struct.pack("<HHH", 1, 0, 1))


def ids(kind: int, *numbers: int) -> NegotiateContext:
    return NegotiateContext(kind, struct.pack(f"<H{len(numbers)}H", len(numbers), *numbers))


def request(
    *dialects: int, contexts: tuple[NegotiateContext, ...] = (PREAUTH,), capabilities: int = 0x40
) -> NegotiateRequest:
    return NegotiateRequest(1, capabilities, b"c" * 16, dialects, contexts)


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ((0x0300,), 0x0300),
        ((0x0302, 0x0300), 0x0302),
        ((0x0202, 0x0311, 0x0302), 0x0311),
        ((0x0202, 0x0210), None),
        ((0x02FF,), None),
        ((0x0312,), None),
    ],
)
def test_the_greatest_common_dialect_is_chosen(
    offered: tuple[int, ...], chosen: int | None
) -> None:
    if chosen is None:
        with pytest.raises(SmbError) as refused:
            negotiated(request(*offered), GUID)
        assert refused.value.status == STATUS_NOT_SUPPORTED
    else:
        assert negotiated(request(*offered), GUID).dialect == chosen


@pytest.mark.parametrize(
    ("ciphers", "chosen"),
    [((1, 2, 3, 4), 2), ((1, 4), 4), ((3, 1), 1), ((3,), 3), ((9,), 0), (None, 0)],
)
def test_the_fastest_common_cipher_is_chosen(ciphers: tuple[int, ...] | None, chosen: int) -> None:
    listed = (PREAUTH,) if ciphers is None else (PREAUTH, ids(2, *ciphers))
    asked = request(0x0311, contexts=listed)
    found = negotiated(asked, GUID)
    assert found.cipher == chosen
    assert not found.capabilities & 0x40
    answered = {one.kind: one.data for one in answer_contexts(asked, found, bytes(32))}
    assert (2 in answered) == (ciphers is not None)
    if ciphers is not None:
        assert answered[2] == struct.pack("<HH", 1, chosen)


@pytest.mark.parametrize(
    ("signings", "chosen"), [((0, 1, 2), 2), ((0, 1), 1), ((0,), 0), ((9,), 1), (None, 1)]
)
def test_the_fastest_common_signature_is_chosen(
    signings: tuple[int, ...] | None, chosen: int
) -> None:
    listed = (PREAUTH,) if signings is None else (PREAUTH, ids(8, *signings))
    assert negotiated(request(0x0311, contexts=listed), GUID).signing == chosen


@pytest.mark.parametrize(("capabilities", "cipher"), [(0x40, 1), (0, 0)])
def test_before_311_a_capability_decides_about_encryption(capabilities: int, cipher: int) -> None:
    found = negotiated(request(0x0302, capabilities=capabilities), GUID)
    assert (found.cipher, found.capabilities & 0x40) == (cipher, capabilities)
    assert answer_contexts(request(0x0302), found, bytes(32)) == ()


@pytest.mark.parametrize(
    ("contexts", "status"),
    [
        ((), STATUS_INVALID_PARAMETER),
        ((ids(2, 1),), STATUS_INVALID_PARAMETER),
        ((PREAUTH, PREAUTH), STATUS_INVALID_PARAMETER),
        ((PREAUTH, ids(2, 1), ids(2, 2)), STATUS_INVALID_PARAMETER),
        ((PREAUTH, ids(8, 1), ids(8, 1)), STATUS_INVALID_PARAMETER),
        ((NegotiateContext(1, struct.pack("<HHH", 1, 0, 2)),), STATUS_NO_PREAUTH_HASH_OVERLAP),
    ],
)
def test_contexts_that_are_missing_or_doubled_are_refused(
    contexts: tuple[NegotiateContext, ...], status: int
) -> None:
    with pytest.raises(SmbError) as refused:
        negotiated(request(0x0311, contexts=contexts), GUID)
    assert refused.value.status == status


def test_an_empty_list_of_algorithms_is_refused() -> None:
    for kind in (2, 8):
        with pytest.raises(MalformedMessage):
            negotiated(request(0x0311, contexts=(PREAUTH, ids(kind))), GUID)


def test_unknown_contexts_are_ignored() -> None:
    listed = (PREAUTH, *[NegotiateContext(kind, b"\xff") for kind in (3, 5, 6, 7, 0x100, 3)])
    asked = request(0x0311, contexts=listed)
    answered = answer_contexts(asked, negotiated(asked, GUID), bytes(32))
    assert [one.kind for one in answered] == [1]
