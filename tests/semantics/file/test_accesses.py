"""Share modes and accesses: every pair of SMB opens, and the tables of the documents for REST."""

from __future__ import annotations

from itertools import product

import pytest

from strongroom.semantics.file import accesses
from strongroom.semantics.file.accesses import Disposition, FileOperation, Stake, Use

R, W, D = Use.READ, Use.WRITE, Use.DELETE
MASKS = {R: accesses.READ_DATA, W: accesses.WRITE_DATA, D: accesses.DELETE}
NAMES = {
    "none": Use.NONE, "R": R, "W": W, "D": D, "R+W": R | W, "R+D": R | D, "W+D": W | D,
    "R+W+D": R | W | D,
}  # fmt: skip
EIGHT = tuple(NAMES)


def mask_of(uses: Use) -> int:
    return accesses.READ_ATTRIBUTES | sum(mask for use, mask in MASKS.items() if use & uses)


def handle(access: str, share: str) -> Stake:
    return accesses.stake_of_handle(mask_of(NAMES[access]), NAMES[share])


@pytest.mark.parametrize(("access", "share"), [*product(EIGHT, EIGHT)])
def test_two_smb_opens_conflict_by_the_rule_of_nt_both_ways(access: str, share: str) -> None:
    """smb.md 3.1: 8 accesses x 8 share modes, beside each of the 64 others."""
    for other_access, other_share in product(EIGHT, EIGHT):
        mine, others = NAMES[access], NAMES[other_access]
        expected = bool(mine and others and (mine & ~NAMES[other_share] or others & ~NAMES[share]))
        found = handle(access, share).conflicts(handle(other_access, other_share))
        assert found is expected, (other_access, other_share)
        assert handle(other_access, other_share).conflicts(handle(access, share)) is expected


COLUMNS = (
    *(FileOperation.CREATE_FILE, FileOperation.GET_FILE, FileOperation.SET_PROPERTIES),
    *(FileOperation.SET_METADATA, FileOperation.DELETE_FILE, FileOperation.PUT_RANGE),
    *(FileOperation.LIST_RANGES, FileOperation.LEASE_FILE),
)
# "Managing file locks", as smb.md 4.2 gives it: x fails with SharingViolation. The columns are
# Create, Get, SetProps, SetMeta, Delete, PutRange, ListRanges, Lease.
BY_SHARE_MODE = {
    "none": "xxxxxxxx",
    "R": "x.xxxx.x",
    "W": "xx..x.xx",
    "D": "xxxxxxxx",
    "R+W": "x...x..x",
    "R+D": "x.xxxx.x",
    "W+D": ".x..x.xx",
    "R+W+D": "....x...",
}


@pytest.mark.parametrize("share", EIGHT)
def test_the_share_mode_of_a_handle_fails_rest_as_documented(share: str) -> None:
    found = "".join(
        "x" if handle("R", share).conflicts(accesses.REST_STAKES[operation]) else "."
        for operation in COLUMNS
    )
    assert found == BY_SHARE_MODE[share]


# smb.md 4.3: the access of a handle when a lease is acquired, and of an open while it is leased.
BY_ACCESS = dict(zip(EIGHT, "..xxxxxx", strict=True))


@pytest.mark.parametrize("access", EIGHT)
def test_a_rest_lease_and_an_open_that_writes_or_deletes_exclude_each_other(access: str) -> None:
    expected = BY_ACCESS[access] == "x"
    acquire = accesses.REST_STAKES[FileOperation.LEASE_FILE]
    assert handle(access, "R+W+D").conflicts(acquire) is expected
    for share in EIGHT:
        assert handle(access, share).conflicts(accesses.LEASED) is expected


@pytest.mark.parametrize("operation", FileOperation, ids=lambda operation: operation.name)
def test_a_handle_for_attributes_only_fails_what_deletes_the_file_and_nothing_else(
    operation: FileOperation,
) -> None:
    stake = accesses.REST_STAKES[operation]
    for share in EIGHT:
        is_delete = operation in (FileOperation.DELETE_FILE, FileOperation.RENAME_TARGET)
        assert handle("none", share).conflicts(stake) is is_delete


def test_every_operation_has_a_stake() -> None:
    assert set(accesses.REST_STAKES) == set(FileOperation)
    assert set(accesses.READ_ONLY_REFUSES) < set(FileOperation)


@pytest.mark.parametrize(
    ("disposition", "uses"),
    [
        (Disposition.SUPERSEDE, D), (Disposition.OPEN, Use.NONE), (Disposition.CREATE, Use.NONE),
        (Disposition.OPEN_IF, Use.NONE), (Disposition.OVERWRITE, W),
        (Disposition.OVERWRITE_IF, W),
    ],
)  # fmt: skip
def test_an_overwrite_counts_as_write_and_a_supersede_as_delete(
    disposition: Disposition, uses: Use
) -> None:
    stake = accesses.stake_of_handle(accesses.READ_ATTRIBUTES, Use.NONE, disposition)
    assert stake.uses == uses | Use.HANDLE
    assert accesses.is_stat(accesses.READ_ATTRIBUTES, disposition, is_lease=False) is not bool(uses)


@pytest.mark.parametrize("bit", range(21))
def test_each_right_has_its_use(bit: int) -> None:
    expected = {0: R, 1: W, 2: W, 5: R, 16: D}.get(bit, Use.NONE)
    assert accesses.uses_of(1 << bit) == expected


@pytest.mark.parametrize("bit", range(21))
def test_which_rights_an_open_that_only_looks_may_have(bit: int) -> None:
    lease = accesses.is_stat(1 << bit, Disposition.OPEN, is_lease=True)
    oplock = accesses.is_stat(1 << bit, Disposition.OPEN, is_lease=False)
    assert (lease, oplock) == (bit in (7, 8, 17, 20), bit in (7, 8, 20))


@pytest.mark.parametrize(
    ("mask", "rights"),
    [
        (0x1000_0000, 0x1F_01FF), (0x2000_0000, 0x12_00A0), (0x4000_0000, 0x12_0116),
        (0x8000_0000, 0x12_0089), (0x0200_0000, 0x1F_01FF), (0x8000_0000 | 0x2, 0x12_008B),
        (0x2000_0000 | 0x8000_0000, 0x12_00A9), (0x12_0089, 0x12_0089), (0, 0),
    ],
)  # fmt: skip
def test_generic_rights_are_replaced(mask: int, rights: int) -> None:
    assert accesses.granted(mask) == rights
