"""What holds for every test: a skip is a failure, Ctrl-C is heard, Hypothesis runs alike on every
machine, and garbage collection leaves out what lives as long as the run.

A test that cannot run has proved nothing, so a missing tool fails with the reason that the test
gave. `HYPOTHESIS_PROFILE=deep` looks for more examples, with a new seed each
time.
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
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
# The second Python of CI repeats less.
settings.register_profile("short", settings.get_profile("steady"), max_examples=15)
settings.register_profile("long", settings.get_profile("steady"), max_examples=300)
settings.register_profile("deep", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background like this, and children would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Take modules and collected tests, a million objects, out of every later collection."""
    gc.collect()
    gc.freeze()


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"A test may not be skipped. {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test into a failed one that says why."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a skipped module into a failed one that says why."""
    report = yield
    _refuse_skip(report)
    return report
