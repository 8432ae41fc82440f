"""Metrics and log lines: the counts, and that no secret appears."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.servers.http.settings import Exchange
from strongroom.servers.telemetry import (
    REQUEST_LOG,
    JsonLines,
    Telemetry,
    TextLines,
    masked_target,
    set_up_logging,
)
from strongroom.wire.core.http import Headers, Request, Response
from tests.app.bodies import Bytes


def exchange(target: str = "/a/b", status: int = 200, operation: str = "Get Blob") -> Exchange:
    response = Response(status, [("x-ms-request-id", "an-id")], operation=operation)
    request = Request("GET", target, Headers(()), Bytes(b""))
    return Exchange(request, status, 10, 200, 0.003, True, response)


def exposed(telemetry: Telemetry) -> dict[str, float]:
    text = telemetry.exposition()[0].decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_requests_are_counted_by_operation_and_status() -> None:
    telemetry = Telemetry(lambda: 3, lambda: 2)
    for status in (200, 200, 404):
        telemetry.observe(exchange(status=status))
    telemetry.observe(Exchange(None, 400, 0, 50, 0.0, False))
    found = exposed(telemetry)
    assert found['strongroom_requests_total{operation="Get Blob",status="200"}'] == 2
    assert found['strongroom_requests_total{operation="Get Blob",status="404"}'] == 1
    assert found['strongroom_requests_total{operation="none",status="400"}'] == 1
    assert found['strongroom_request_seconds_count{operation="Get Blob"}'] == 3
    assert found['strongroom_request_seconds_bucket{le="0.0025",operation="Get Blob"}'] == 0
    assert found['strongroom_request_seconds_bucket{le="0.005",operation="Get Blob"}'] == 3
    assert found["strongroom_received_bytes_total"] == 30
    assert found["strongroom_sent_bytes_total"] == 650
    assert found["strongroom_incomplete_answers_total"] == 1
    assert found["strongroom_connections"] == 3
    assert found["strongroom_waiters"] == 2


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("/a/b?sv=1&sig=abc", "/a/b?sv=1&sig=-"),
        ("/a/b?sig=abc&sv=1", "/a/b?sig=-&sv=1"),
        ("/a/b?SIG=abc", "/a/b?SIG=-"),
        ("/a/b?s%69g=abc", "/a/b?s%69g=-"),
        ("/a/b?sig=a=b=c", "/a/b?sig=-"),
        ("/a/b?sig=a&sig=b", "/a/b?sig=-&sig=-"),
        ("/a/b?design=abc&sigx=1", "/a/b?design=abc&sigx=1"),
        ("/a/b?sv=1&amp;sig=abc&amp;se=2", "/a/b?sv=1&amp;sig=-&amp;se=2"),
        ("/a/b?sv=1;SIG=abc%2B", "/a/b?sv=1;SIG=-"),
        ("/a/b%3Fsig=abc", "/a/b%3Fsig=-"),
        ("/a/b%3fsv%3d1%26sig%3Dabc", "/a/b%3fsv%3d1%26sig%3D-"),
        ("/a/b?sig[]=abc", "/a/b?sig[]=-"),
        ("/a/b?sig", "/a/b?sig"),
        ("/a/b?", "/a/b?"),
        ("/a/b", "/a/b"),
        ("/a/\n\x1b[2J\xe4", "/a/%0A%1B[2J%E4"),
    ],
)
def test_a_signature_is_not_shown(target: str, shown: str) -> None:
    path, mark, query = target.partition("?")
    assert masked_target(path, query if mark else None) == shown


@given(st.text(alphabet=st.characters(max_codepoint=255)), st.text())
def test_a_line_stays_a_line(path: str, query: str) -> None:
    shown = masked_target(path, query)
    assert shown.isascii()
    assert shown.isprintable()
    assert " " not in shown


def logged(caplog: pytest.LogCaptureFixture, formatter: logging.Formatter) -> str:
    telemetry = Telemetry(lambda: 0, lambda: 0)
    with caplog.at_level(logging.DEBUG, REQUEST_LOG):
        telemetry.observe(exchange("/a/b?sig=secret"))
    (record,) = caplog.records
    return formatter.format(record)


def test_a_request_is_one_line_of_text(caplog: pytest.LogCaptureFixture) -> None:
    line = logged(caplog, TextLines())
    assert "method=GET target=/a/b?sig=- status=200 operation=Get Blob" in line
    assert "request_id=an-id" in line
    assert "\n" not in line


def test_a_request_is_one_json_object(caplog: pytest.LogCaptureFixture) -> None:
    entry = json.loads(logged(caplog, JsonLines()))
    assert entry["target"] == "/a/b?sig=-"
    assert entry["bytes_out"] == 200
    assert entry["ms"] == 3.0
    assert entry["level"] == "debug"


@pytest.mark.parametrize("formatter", [TextLines(), JsonLines()])
def test_an_exception_is_logged_whole(formatter: logging.Formatter) -> None:
    try:
        raise ValueError("what went wrong")
    except ValueError:
        import sys

        record = logging.LogRecord("x", logging.ERROR, "", 0, "broken: %s", ("a",), sys.exc_info())
    text = formatter.format(record)
    assert "broken: a" in text
    assert "what went wrong" in text


@pytest.fixture
def project_log() -> Iterator[logging.Logger]:
    """Provide the project's logger, and put back what it was set to."""
    logger = logging.getLogger("strongroom")
    before = (logger.handlers[:], logger.level, logger.propagate)
    yield logger
    for handler in logger.handlers:
        if handler not in before[0]:
            handler.close()
    logger.handlers[:], logger.propagate = before[0], before[2]
    logger.setLevel(before[1])


def test_a_debug_log_has_every_line_and_only_its_owner_reads_it(
    tmp_path: Path, project_log: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "debug.log"
    for _ in range(2):
        set_up_logging("warning", "text", file)
        project_log.debug("small")
        project_log.warning("large")
    lines = file.read_text(encoding="utf-8").splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == ["small", "large"] * 2
    assert file.stat().st_mode & 0o777 == 0o600
    printed = capsys.readouterr().err
    assert "small" not in printed and printed.count("large") == 2


def test_without_a_debug_log_lines_below_the_level_are_not_made(
    project_log: logging.Logger,
) -> None:
    set_up_logging("warning", "text")
    assert not project_log.isEnabledFor(logging.INFO)
