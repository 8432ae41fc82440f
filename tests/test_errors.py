"""The error table: a row may have the SMB status of the same situation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.wire.core import errors_xml

SHARING_VIOLATION = 0xC0000043


@pytest.fixture(autouse=True)
def table() -> Iterator[None]:
    """Restore the table after a test that adds rows."""
    before = list(errors._TABLE)
    yield
    errors._TABLE[:] = before


def test_a_row_may_carry_an_ntstatus_that_http_does_not_show() -> None:
    plain = errors.row("Shared", 409, "It is open.")
    row = errors.row("Shared", 409, "It is open.", SHARING_VIOLATION)
    assert (plain.ntstatus, row.ntstatus) == (None, SHARING_VIOLATION)
    assert row in errors.table()
    shown = [errors_xml.error_body(StorageError(one), "id", 0) for one in (plain, row)]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("ntstatus", [0, 0x00000103, 0x80000005, 0x1C0000043, -1])
def test_an_ntstatus_that_is_no_error_is_refused(ntstatus: int) -> None:
    with pytest.raises(ValueError, match="no NTSTATUS"):
        errors.row("Shared", 409, "It is open.", ntstatus)
