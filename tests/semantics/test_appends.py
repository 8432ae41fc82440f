"""The rules of append blobs as tables."""

from __future__ import annotations

import pytest

from strongroom.errors.blob import (
    APPEND_POSITION_CONDITION_NOT_MET,
    BLOB_IS_SEALED,
    BLOCK_COUNT_EXCEEDS_LIMIT,
    FEATURE_VERSION_MISMATCH,
    INVALID_BLOB_TYPE,
    MAX_BLOB_SIZE_CONDITION_NOT_MET,
)
from strongroom.errors.core import ErrorCode, StorageError
from strongroom.semantics.blob import appends
from strongroom.semantics.blob.appends import AppendConditions
from strongroom.values import BlobKind

MIB = 1024 * 1024
AT, MAX = APPEND_POSITION_CONDITION_NOT_MET, MAX_BLOB_SIZE_CONDITION_NOT_MET


@pytest.mark.parametrize(
    ("position", "max_size", "added", "error"),
    [
        (None, None, 5, None),
        (10, None, 5, None),
        (9, None, 5, AT),
        (11, None, 5, AT),
        (None, 15, 5, None),
        (None, 14, 5, MAX),
        (None, 9, 0, MAX),
        (10, 15, 5, None),
        (9, 14, 5, MAX),
    ],
)
def test_conditions_on_a_blob_of_ten_bytes(
    position: int | None, max_size: int | None, added: int, error: ErrorCode | None
) -> None:
    """B-APP-04 B-APP-05."""
    given = AppendConditions(position, max_size)
    if error is None:
        appends.check(given, 10, added)
        return
    with pytest.raises(StorageError) as refused:
        appends.check(given, 10, added)
    assert refused.value.row is error


@pytest.mark.parametrize(
    ("sealed", "count", "error"),
    [
        (False, 49_999, None),
        (False, 50_000, BLOCK_COUNT_EXCEEDS_LIMIT),
        (True, 0, BLOB_IS_SEALED),
        (True, 50_000, BLOB_IS_SEALED),
    ],
)
def test_what_takes_one_more_block(sealed: bool, count: int, error: ErrorCode | None) -> None:
    """B-APP-07 B-APP-11."""
    if error is None:
        appends.require_appendable(sealed, count)
        return
    with pytest.raises(StorageError) as refused:
        appends.require_appendable(sealed, count)
    assert refused.value.row is error


def test_the_bounds_of_versions() -> None:
    """B-APP-06 B-APP-18."""
    found = [appends.block_bytes_max(one) for one in ("2015-02-21", "2022-11-01", "2022-11-02")]
    assert found == [4 * MIB, 4 * MIB, 100 * MIB]
    appends.require_version("2015-02-21")
    with pytest.raises(StorageError) as refused:
        appends.require_version("2014-02-14")
    assert refused.value.row is FEATURE_VERSION_MISMATCH


@pytest.mark.parametrize("kind", BlobKind)
def test_which_copies_are_sealed(kind: BlobKind) -> None:
    """B-APP-13."""
    assert [appends.sealed_copy(kind, sealed, None) for sealed in (False, True)] == [False, True]
    assert not appends.sealed_copy(kind, True, False)
    if kind is BlobKind.APPEND:
        assert appends.sealed_copy(kind, False, True)
    else:
        with pytest.raises(StorageError) as refused:
            appends.sealed_copy(kind, False, True)
        assert refused.value.row is INVALID_BLOB_TYPE
