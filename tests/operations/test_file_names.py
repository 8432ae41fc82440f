"""Paths of the File service that cannot name anything."""

from __future__ import annotations

import pytest

from strongroom.operations.file.endpoint import ENDPOINT
from strongroom.wire.core import path, query
from tests.refusals import outcome


@pytest.mark.parametrize(
    ("named", "refusal"),
    [
        ("a/b.txt", "ok"),
        ("a/b.txt/", "ok"),
        ("a%3Cb", "400 InvalidResourceName"),
        ("a%01b", "400 InvalidResourceName"),
        ("con", "400 InvalidResourceName"),
        ("a/Lpt1/b", "400 InvalidResourceName"),
        ("a/../b", "400 InvalidResourceName"),
        ("a//b", "400 InvalidResourceName"),
        ("x" * 256, "400 InvalidFileOrDirectoryPathName"),
        ("/".join(["d" * 40] * 60), "400 InvalidFileOrDirectoryPathName"),
        ("/".join("d" * 251), "400 InvalidFileOrDirectoryPathName"),
    ],
)
def test_names_that_no_file_has(named: str, refusal: str) -> None:
    """F-ADR-05."""
    addressed = ENDPOINT.address(path.parse(f"/account/share/{named}"), query.parse(None))
    assert outcome(lambda: ENDPOINT.check_names(addressed)) == refusal
