"""The rules of page blobs, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from strongroom.errors.core import StorageError
from strongroom.semantics.blob import pages, tiers
from strongroom.semantics.blob.pages import (
    SEQUENCE_MAX,
    IncrementalCopy,
    PageState,
    SequenceAction,
    SequenceConditions,
)
from strongroom.values import ByteRange

TIB = 1 << 40
MAX, UPDATE, INCREMENT = SequenceAction.MAX, SequenceAction.UPDATE, SequenceAction.INCREMENT


@contextmanager
def refused(code: str) -> Iterator[None]:
    """Expect that the block is refused with this code."""
    with pytest.raises(StorageError) as raised:
        yield
    assert raised.value.row.code == code


@pytest.mark.parametrize("size", [0, 512, TIB, 8 * TIB])
def test_lengths_that_a_page_blob_may_have(size: int) -> None:
    assert pages.check_size("n", str(size), size) == size


@pytest.mark.parametrize("size", [1, 511, 513, 8 * TIB + 512])
def test_lengths_that_it_may_not_have(size: int) -> None:
    with refused("InvalidHeaderValue"):
        pages.check_size("n", str(size), size)


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [
        (0, 511, (0, 512)),
        (512, 2047, (512, 1536)),
        (8 * TIB - 512, 8 * TIB - 1, (8 * TIB - 512, 512)),
        (0, None, None),
        (1, 511, None),
        (0, 510, None),
        (0, 512, None),
        (1024, 511, None),
        (8 * TIB, 8 * TIB + 511, None),
    ],
)
def test_ranges_of_pages(first: int, last: int | None, found: tuple[int, int] | None) -> None:
    if found is None:
        with refused("InvalidPageRange"):
            pages.page_range(ByteRange(first, last))
    else:
        assert pages.page_range(ByteRange(first, last)) == found


@pytest.mark.parametrize("given", [None, 4, 5, 6])
def test_sequence_conditions_one_by_one(given: int | None) -> None:
    meets = {
        SequenceConditions(at_most=given): given is None or given >= 5,
        SequenceConditions(below=given): given is None or given > 5,
        SequenceConditions(equal=given): given is None or given == 5,
    }
    for wanted, is_met in meets.items():
        if is_met:
            pages.check_sequence(wanted, 5)
        else:
            with refused("SequenceNumberConditionNotMet"):
                pages.check_sequence(wanted, 5)


def test_all_sequence_conditions_must_hold() -> None:
    pages.check_sequence(SequenceConditions(5, 6, 5), 5)
    for wanted in (
        SequenceConditions(4, 6, 5),
        SequenceConditions(5, 5, 5),
        SequenceConditions(5, 6, 4),
    ):
        with refused("SequenceNumberConditionNotMet"):
            pages.check_sequence(wanted, 5)


@pytest.mark.parametrize(
    ("action", "given", "number", "found"),
    [
        (MAX, 4, 5, 5),
        (MAX, 6, 5, 6),
        (UPDATE, 4, 5, 4),
        (UPDATE, SEQUENCE_MAX, 5, SEQUENCE_MAX),
        (INCREMENT, None, 5, 6),
        (INCREMENT, None, SEQUENCE_MAX - 1, SEQUENCE_MAX),
        (INCREMENT, None, SEQUENCE_MAX, None),
    ],
)
def test_actions_on_a_sequence_number(
    action: SequenceAction, given: int | None, number: int, found: int | None
) -> None:
    if found is None:
        with refused("SequenceNumberIncrementTooLarge"):
            pages.next_number(action, given, number)
    else:
        assert pages.next_number(action, given, number) == found


def test_each_tier_takes_a_blob_of_its_length_and_no_longer() -> None:
    sizes = [32 << 30 << step for step in range(len(pages.TIERS))]
    for tier, size in zip(pages.TIERS, sizes, strict=True):
        pages.check_tier(tier, size)
        with refused("BlobTierInadequateForContentLength"):
            pages.check_tier(tier, size + 512)
        assert pages.read_tier("n", tier.lower()) == tier == tiers.read_any_tier("n", tier)
    pages.check_tier(None, 8 * TIB)


@pytest.mark.parametrize(
    ("before", "tier", "code"),
    [
        (None, "P4", None),
        ("P4", "P10", None),
        ("P10", "P10", None),
        ("P10", "P6", "CannotChangeToLowerTier"),
        (None, "Hot", "InvalidBlobTier"),
        ("P10", "Archive", "InvalidBlobTier"),
    ],
)
def test_new_tiers(before: str | None, tier: str, code: str | None) -> None:
    if code is None:
        pages.check_new_tier(before, tier, 512)
    else:
        with refused(code):
            pages.check_new_tier(before, tier, 512)


def test_the_next_source_of_an_incremental_copy() -> None:
    before = IncrementalCopy("a/c/1/b", 100)
    pages.check_next_source(before, "a/c/1/b", 100)
    pages.check_next_source(before, "a/c/1/b", 101)
    with refused("IncrementalCopyBlobMismatch"):
        pages.check_next_source(before, "a/c/2/b", 101)
    with refused("IncrementalCopyOfEralierVersionSnapshotNotAllowed"):
        pages.check_next_source(before, "a/c/1/b", 99)


def test_only_an_incremental_copy_blob_is_unusual() -> None:
    pages.require_not_incremental_copy(None)
    pages.require_not_incremental_copy(PageState(3))
    with refused("OperationNotAllowedOnIncrementalCopyBlob"):
        pages.require_not_incremental_copy(PageState(3, IncrementalCopy("a", 1)))
