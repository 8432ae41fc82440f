"""Log lines of failed logons: bounded, and without what a client may have put into a name."""

from __future__ import annotations

import logging

import pytest

from strongroom.servers.failed_logons import LINES_MAX, FailedLogons


@pytest.fixture
def log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> pytest.LogCaptureFixture:
    """The records that the test has written."""
    monkeypatch.setattr(logging.getLogger("strongroom"), "propagate", True)
    return caplog


def test_one_line_a_minute_for_an_account_and_an_address(log: pytest.LogCaptureFixture) -> None:
    logons = FailedLogons()
    for second in range(61):
        logons.note("SMB", "orders", "10.0.0.1", float(second))
    logons.note("SMB", "orders", "10.0.0.2", 61.0)
    assert [one.getMessage() for one in log.records] == [
        "logon failed: SMB, account orders, from 10.0.0.1",
        "logon failed: SMB, account orders, from 10.0.0.1 (59 more since the last such line)",
        "logon failed: SMB, account orders, from 10.0.0.2",
    ]


def test_ever_new_addresses_cause_a_bounded_number_of_lines(log: pytest.LogCaptureFixture) -> None:
    logons = FailedLogons()
    for number in range(3 * LINES_MAX):
        logons.note("SMB", "orders", f"10.0.0.{number}", 1.0)
    *lines, last = [one.getMessage() for one in log.records]
    assert len(lines) == LINES_MAX
    assert last.startswith(f"logon failed: more than {LINES_MAX} accounts and addresses")
    logons.note("SMB", "orders", "10.1.0.1", 61.0)
    assert log.records[-1].getMessage() == "logon failed: SMB, account orders, from 10.1.0.1"
    assert len(log.records) == LINES_MAX + 2


@pytest.mark.parametrize("name", ["", "a", "Orders", "key/with+secret==", "a\nb", "x" * 25])
def test_a_name_that_no_account_has_is_not_shown(name: str, log: pytest.LogCaptureFixture) -> None:
    FailedLogons().note("SMB", name, "10.0.0.1", 0.0)
    (line,) = [one.getMessage() for one in log.records]
    assert line == "logon failed: SMB, a name that no account has, from 10.0.0.1"
