"""Rules for every test: a skip is a failure, Ctrl-C works, Hypothesis runs alike on every machine.

A test that cannot run has proved nothing, so a missing tool fails with the reason of the test.
`HYPOTHESIS_PROFILE=deep` tries more examples, with a new seed each time. Objects that live as long
as the run are left out of garbage collection, which also runs less often than Python's default.
`STRONGROOM_TEST_STORE=postgres` keeps the data of servers in a PostgreSQL (over_postgres.py);
`two-gateways` lets two servers serve it beside each other, and `balanced` puts HAProxy before them.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow],
)
# The run of CI on the second Python version repeats less.
settings.register_profile("short", settings.get_profile("steady"), max_examples=15)
settings.register_profile("long", settings.get_profile("steady"), max_examples=300)
settings.register_profile("deep", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# By default a pass starts at every 700 new objects, also while half a million are made by imports.
gc.set_threshold(20_000, 20, 20)

if os.environ.get("STRONGROOM_TEST_STORE") in ("postgres", "two-gateways", "balanced"):
    from tests.over_postgres import keep_in_postgres  # few runs need a database

    keep_in_postgres()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored, and children would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Exclude modules and collected tests, a million objects, from every later collection."""
    gc.collect()
    gc.freeze()


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"A test may not be skipped. {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test into a failed one, with the reason."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a skipped module into a failed one, with the reason."""
    report = yield
    _refuse_skip(report)
    return report
