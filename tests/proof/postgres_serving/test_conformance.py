"""Every conformance test once more, over a PostgreSQL in place of memory."""

from __future__ import annotations

import pytest

from tests.proof.postgres_serving.suites import passed


@pytest.mark.timeout(3600)
def test_the_conformance_tests_pass_over_postgresql() -> None:
    assert passed("tests/conformance", "postgres") > 4000
