"""The rules of durable handles, tested as whole tables; smb.md 1.6, 2.4, 2.6 and 3.9."""

from __future__ import annotations

import itertools

import pytest

from strongroom.errors import core as errors
from strongroom.errors import file as file_errors
from strongroom.errors.core import ErrorCode
from strongroom.semantics.file import durability, oplocks
from strongroom.semantics.file.deletion import DeletionState
from strongroom.semantics.file.durability import (
    DisconnectReason,
    DurableOpen,
    ReconnectClaim,
    RepeatedCreate,
)
from strongroom.semantics.file.oplocks import (
    Caching,
    CachingHolder,
    CachingKey,
    CachingKind,
    R,
)

GUID, OTHER_GUID, NO_GUID = b"g" * 16, b"h" * 16, bytes(16)
CLIENT, OTHER_CLIENT = b"c" * 16, b"d" * 16
LEASE, OTHER_LEASE = b"l" * 16, b"m" * 16
V1, V2, OPLOCK = CachingKind.LEASE_V1, CachingKind.LEASE_V2, CachingKind.OPLOCK
NOT_FOUND, DENIED = errors.RESOURCE_NOT_FOUND, file_errors.HANDLE_OF_OTHER_USER
STATES = (*oplocks.LEASE_STATES, Caching.HANDLE, Caching.WRITE, Caching.WRITE | Caching.HANDLE)


@pytest.mark.parametrize("caching", STATES)
def test_a_file_with_handle_caching_is_granted_and_nothing_else(caching: Caching) -> None:
    has_handle = bool(int(caching) & 2)
    assert durability.is_granted(caching, is_directory=False) is has_handle
    assert not durability.is_granted(caching, is_directory=True)


def test_of_the_oplocks_batch_alone_is_granted() -> None:
    granted = {
        level
        for level, caching in oplocks.LEVELS.items()
        if durability.is_granted(caching, is_directory=False)
    }
    assert granted == {oplocks.OplockLevel.BATCH}


@pytest.mark.parametrize(
    ("guid", "wanted", "timeout"),
    [
        (None, 0, 120_000),
        (None, 5, 120_000),
        (GUID, 0, 60_000),
        (GUID, 1, 1),
        (GUID, 300_000, 300_000),
        (GUID, 300_001, 300_000),
        (GUID, 0xFFFF_FFFF, 300_000),
    ],
)
def test_version_2_chooses_its_time_out_up_to_a_limit(
    guid: bytes | None, wanted: int, timeout: int
) -> None:
    assert durability.timeout_ms(guid, wanted) == timeout


@pytest.mark.parametrize("reason", DisconnectReason)
@pytest.mark.parametrize("held", STATES)
@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("is_pending", [False, True])
def test_a_handle_is_kept_while_nobody_asks_for_its_file(
    reason: DisconnectReason, held: Caching, breaks: bool, is_pending: bool
) -> None:
    break_to = R if breaks else None
    holder = CachingHolder(1, OPLOCK, held, break_to, break_to)
    state = DeletionState(is_pending, frozenset({1}))
    expected = (
        reason in (DisconnectReason.DISCONNECTED, DisconnectReason.LOGGED_OFF)
        and bool(int(held) & 2)
        and not breaks
        and not is_pending
    )
    assert durability.survives_disconnect(reason, holder, state) is expected
    assert not durability.survives_disconnect(reason, None, state)


@pytest.mark.parametrize("to", oplocks.LEASE_STATES)
def test_a_break_ends_a_wait_unless_another_open_keeps_handle_caching(to: Caching) -> None:
    assert not durability.survives_break(to, is_anybody_connected=False)
    keeps = to in (oplocks.RH, oplocks.RWH)
    assert durability.survives_break(to, is_anybody_connected=True) is keeps


KEYS: dict[CachingKind, CachingKey] = {OPLOCK: 7, V1: (CLIENT, LEASE), V2: (CLIENT, LEASE)}
OPENS = [
    DurableOpen(is_durable, is_connected, guid, user, place, caching, KEYS[kind], kind, ("D", "f"))
    for is_durable, is_connected, guid, user, place, caching, kind in itertools.product(
        (True, False),
        (False, True),
        (None, GUID),
        ("ann", "bob"),
        ("share", "other"),
        (oplocks.RWH, oplocks.RH, R, Caching.NONE),
        (OPLOCK, V1, V2),
    )
]
CLAIMS = [
    ReconnectClaim(guid, "ann", "share", client, key, kind, path)
    for guid, client, (key, kind), path in itertools.product(
        (None, GUID, OTHER_GUID, NO_GUID),
        (CLIENT, OTHER_CLIENT),
        ((None, None), (LEASE, V1), (LEASE, V2), (OTHER_LEASE, V1), (OTHER_LEASE, V2)),
        (("d", "F"), ("d", "g"), ("d",), None),
    )
]


def _expected(found: DurableOpen, claim: ReconnectClaim) -> ErrorCode | None:
    """smb.md 3.9, read row by row and independently of the code."""
    own_guid = NO_GUID if found.create_guid is None else found.create_guid
    leases_agree = (claim.lease_key is None) == (found.kind is OPLOCK)
    if leases_agree and found.kind is not OPLOCK:
        leases_agree = (
            claim.lease_key == LEASE
            and claim.lease_kind is found.kind
            and claim.client_guid == CLIENT
        )
    is_there = (
        found.is_durable
        and not found.is_connected
        and bool(found.caching & 2)
        and found.place == "share"
        and claim.create_guid in (None, own_guid)
        and leases_agree
    )
    if not is_there:
        return NOT_FOUND
    if found.user != "ann":
        return DENIED
    if found.kind is not OPLOCK and claim.path != ("d", "F"):
        return file_errors.LEASE_OF_OTHER_FILE
    return None


def test_every_reconnect_is_answered_as_the_table_says() -> None:
    seen = set()
    for found, claim in itertools.product(OPENS, CLAIMS):
        answer = durability.reconnect_refusal(found, claim)
        assert answer is _expected(found, claim), (found, claim)
        seen.add(answer)
    assert seen == {None, NOT_FOUND, DENIED, file_errors.LEASE_OF_OTHER_FILE}


def test_the_statuses_of_refused_reconnects() -> None:
    assert NOT_FOUND.ntstatus == file_errors.STATUS_OBJECT_NAME_NOT_FOUND
    assert DENIED.ntstatus == file_errors.STATUS_ACCESS_DENIED
    assert file_errors.LEASE_OF_OTHER_FILE.ntstatus == file_errors.STATUS_INVALID_PARAMETER


@pytest.mark.parametrize("claim", CLAIMS[:8])
def test_after_a_start_of_the_server_there_is_nothing_to_come_back_to(
    claim: ReconnectClaim,
) -> None:
    assert durability.reconnect_refusal(None, claim) is NOT_FOUND


@pytest.mark.parametrize("is_replay", [False, True])
@pytest.mark.parametrize("is_same_session", [False, True])
@pytest.mark.parametrize("user", ["ann", "bob"])
@pytest.mark.parametrize("kind", [OPLOCK, V2])
@pytest.mark.parametrize("lease", [None, LEASE, OTHER_LEASE])
def test_every_repeated_create_is_answered_as_the_table_says(
    is_replay: bool, is_same_session: bool, user: str, kind: CachingKind, lease: bytes | None
) -> None:
    found = DurableOpen(
        True, True, GUID, "ann", "share", oplocks.RWH, KEYS[kind], kind, ("f",)
    )  # fmt: skip
    asked = RepeatedCreate(is_replay, is_same_session, user, CLIENT, lease)
    is_other_lease = lease == OTHER_LEASE or (lease == LEASE and kind is OPLOCK)
    expected = None
    if not is_replay:
        expected = file_errors.CREATE_REPEATED
    elif user == "bob" or is_other_lease:
        expected = DENIED
    elif not is_same_session:
        expected = file_errors.CREATE_REPEATED
    assert durability.repetition_refusal(found, asked) is expected
    assert durability.repetition_refusal(None, asked) is file_errors.CREATE_UNDER_WAY


def test_a_lock_is_repeated_when_its_bucket_has_the_same_number() -> None:
    done = {1: 3, 64: 0, 0: 5, 65: 5}
    for bucket, number in itertools.product(range(-1, 67), range(16)):
        expected = (bucket, number) in ((1, 3), (64, 0))
        assert durability.is_repeated_lock(done, bucket, number) is expected
