"""The tests of the services once more, over a PostgreSQL in place of memory."""

from __future__ import annotations

import pytest

from tests.proof.postgres_serving.suites import passed


@pytest.mark.timeout(3600)
def test_the_tests_of_the_services_pass_over_one_gateway() -> None:
    assert passed("tests/services", "postgres") > 2000


@pytest.mark.timeout(3600)
def test_the_tests_of_the_services_pass_over_two_gateways_in_turn() -> None:
    """Those of shares, and those that make several gateways themselves, run over one."""
    assert passed("tests/services", "two-gateways") > 1000
