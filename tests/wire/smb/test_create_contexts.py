"""Create contexts: chains in every form, the sizes of their data, and exclusive combinations."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.wire.smb.header import FileId
from strongroom.wire.smb.requests.create_contexts import (
    CONTEXTS_MAX,
    CreateContexts,
    DurableReconnectV2,
    DurableRequestV2,
    LeaseContext,
    MaximalAccess,
    chain,
    disk_id_data,
    durable_v2_data,
    lease_data,
    maximal_access_data,
    read_contexts,
    write_chain,
)
from strongroom.wire.smb.structures import MalformedMessage

V1 = LeaseContext(b"k" * 16, 7, 0)
V2 = LeaseContext(b"k" * 16, 7, 4, b"p" * 16, 9, is_v2=True)
GUID = b"g" * 16

KNOWN: dict[bytes, tuple[bytes, CreateContexts]] = {
    b"DHnQ": (bytes(16), CreateContexts(durable_request=True)),
    b"DHnC": (struct.pack("<QQ", 1, 2), CreateContexts(durable_reconnect=FileId(1, 2))),
    b"DH2Q": (
        struct.pack("<IIQ16s", 5, 2, 0, GUID),
        CreateContexts(durable_request_v2=DurableRequestV2(5, 2, GUID)),
    ),
    b"DH2C": (
        struct.pack("<QQ16sI", 1, 2, GUID, 0),
        CreateContexts(durable_reconnect_v2=DurableReconnectV2(1, 2, GUID, 0)),
    ),
    b"QFid": (b"", CreateContexts(disk_id=True)),
    b"AlSi": (struct.pack("<Q", 7), CreateContexts(allocation=7)),
    b"TWrp": (struct.pack("<Q", 8), CreateContexts(snapshot=8)),
    b"MxAc": (b"", CreateContexts(maximal_access=MaximalAccess())),
    b"RqLs": (lease_data(V1), CreateContexts(lease=V1)),
    b"SecD": (b"sd", CreateContexts(security=b"sd")),
    b"ExtA": (b"", CreateContexts(extended_attributes=b"")),
}


@pytest.mark.parametrize("name", KNOWN)
def test_each_context_is_read(name: bytes) -> None:
    data, contexts = KNOWN[name]
    assert read_contexts(memoryview(write_chain([(name, data)]))) == contexts


@pytest.mark.parametrize("name", sorted(KNOWN.keys() - {b"SecD", b"ExtA"}))
def test_data_of_another_size_is_refused(name: bytes) -> None:
    sizes = {len(KNOWN[name][0])} | ({52} if name == b"RqLs" else {8} if name == b"MxAc" else set())
    for size in range(64):
        if size not in sizes:
            with pytest.raises(MalformedMessage):
                read_contexts(memoryview(write_chain([(name, bytes(size))])))


def test_a_lease_of_version_2_has_a_parent_and_an_epoch() -> None:
    data = memoryview(write_chain([(b"RqLs", lease_data(V2))]))
    assert read_contexts(data) == CreateContexts(lease=V2)


def test_a_timestamp_spares_the_maximal_access() -> None:
    data = memoryview(write_chain([(b"MxAc", struct.pack("<Q", 3))]))
    assert read_contexts(data) == CreateContexts(maximal_access=MaximalAccess(3))


def test_unknown_names_are_ignored_and_the_first_of_two_counts() -> None:
    data = write_chain([
        (b"AAPL", b"x"), (b"AlSi", struct.pack("<Q", 1)), (b"AlSi", struct.pack("<Q", 2)),
        (b"\x45\xbc\xa6\x6a" + bytes(12), b"app"),
    ])  # fmt: skip
    assert read_contexts(memoryview(data)) == CreateContexts(allocation=1)


_DURABLE = (b"DHnQ", b"DHnC", b"DH2Q", b"DH2C")


@pytest.mark.parametrize("first", _DURABLE)
@pytest.mark.parametrize("second", _DURABLE)
def test_contexts_of_both_versions_exclude_each_other(first: bytes, second: bytes) -> None:
    data = write_chain([(name, KNOWN[name][0]) for name in (first, second)])
    # Of version 1 both may come; DHnQ is ignored then.
    if first == second or {first, second} == {b"DHnQ", b"DHnC"}:
        read_contexts(memoryview(data))
    else:
        with pytest.raises(MalformedMessage):
            read_contexts(memoryview(data))


_CHAINS = st.lists(
    st.tuples(st.binary(min_size=4, max_size=16), st.binary(max_size=40)), max_size=CONTEXTS_MAX
)


@given(contexts=_CHAINS)
def test_a_chain_is_read_as_it_was_written(contexts: list[tuple[bytes, bytes]]) -> None:
    found = chain(memoryview(write_chain(contexts)))
    assert [(name, bytes(data)) for name, data in found] == contexts


def test_a_chain_has_no_more_contexts_than_allowed() -> None:
    with pytest.raises(MalformedMessage):
        chain(memoryview(write_chain([(b"QFid", b"")] * (CONTEXTS_MAX + 1))))


def test_every_cut_of_a_chain_is_refused() -> None:
    data = write_chain([(b"AlSi", bytes(8)), (b"TWrp", bytes(8))])
    for size in range(1, len(data)):
        with pytest.raises(MalformedMessage):
            chain(memoryview(data[:size]))


@pytest.mark.parametrize(
    ("at", "form", "value"),
    [
        (0, "I", 8), (0, "I", 33), (0, "I", 1000), (0, "I", 0xFFFFFFF8), (4, "H", 8),
        (4, "H", 60000), (6, "H", 3), (6, "H", 60000), (10, "H", 15), (10, "H", 60000),
        (12, "I", 0xFFFFFFFF), (12, "I", 9),
    ],
)  # fmt: skip
def test_a_context_lies_between_its_own_start_and_the_next(at: int, form: str, value: int) -> None:
    data = bytearray(write_chain([(b"AlSi", bytes(8)), (b"TWrp", bytes(8))]))
    struct.pack_into("<" + form, data, at, value)
    with pytest.raises(MalformedMessage):
        chain(memoryview(data))


def test_answers_have_their_sizes() -> None:
    assert durable_v2_data(60000, 0).hex() == "60ea000000000000"
    assert maximal_access_data(0, 0x1F01FF).hex() == "00000000ff011f00"
    assert len(disk_id_data(1, 2)) == 32
    assert len(lease_data(V1)) == 32
    assert len(lease_data(V2)) == 52
