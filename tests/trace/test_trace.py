"""`python -m tests.trace` shows every step of a request, and what runs in it."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT
from tests.trace import report
from tests.trace.__main__ import main
from tests.trace.plans import Sent, lengthened, plan
from tests.trace.recording import Called, Recorder
from tests.trace.sending import Place, answer_to
from tests.trace.steps import ENGINE, STEPS, missing, steps_of

# A request of each service that changes something, and one that reads.
REQUESTS = [
    ("blob", "PUT /c/b", 201),
    ("blob", "GET /c/b", 200),
    ("blob", "PUT /c/b?comp=page", 201),
    ("blob", "PUT /c/b?comp=appendblock", 201),
    ("blob", "PUT /c?restype=container", 201),
    ("queue", "POST /q/messages", 201),
    ("queue", "GET /q/messages", 200),
    ("table", "POST /t", 201),
    ("table", "GET /t(PartitionKey='p',RowKey='r')", 200),
    ("table", "MERGE /t(PartitionKey='p',RowKey='r')", 204),
    ("file", "PUT /s/d/f", 201),
    ("file", "PUT /s/d/f?comp=range", 201),
    ("file", "GET /s/d/e/f", 200),
    ("file", "GET /s/d?restype=directory&comp=list", 200),
]


def _recorded(service: str, request: str) -> tuple[Recorder, int]:
    method, _, target = request.partition(" ")
    recorder = Recorder(ENGINE)
    planned = plan(service, Sent(method, target))
    return recorder, answer_to(planned, service, Place(None), recorder).status


@pytest.mark.parametrize(("service", "request_line", "status"), REQUESTS)
def test_each_step_is_passed_once_and_in_order(
    service: str, request_line: str, status: int
) -> None:
    recorder, answered = _recorded(service, request_line)
    steps = steps_of(recorder.events)
    assert answered == status
    assert [step.name for step in steps if step.was_begun] == list(STEPS)
    assert missing(steps) == []


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_did_not_run_is_named(name: str) -> None:
    recorder, _ = _recorded("blob", "PUT /c/b")
    [own] = [step for step in steps_of(recorder.events) if step.name == name]
    begins = {event.code for event in own.events if isinstance(event, Called)}
    rest = [
        event
        for event in recorder.events
        if not isinstance(event, Called) or event.code not in begins
    ]
    steps = steps_of(rest)
    assert name in missing(steps)
    assert "left out: " in [*report.steps(steps, False)][-1]


def test_a_request_without_a_place_leaves_that_step_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["GET /?comp=list"]) == 0
    assert re.search(r"^\d+ files; left out: place$", capsys.readouterr().out, re.MULTILINE)


def test_calls_of_the_engine_have_their_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["PUT /c/b"]) == 0
    out = capsys.readouterr().out
    assert "place: read\n  read cdevstoreaccount1 / ccc face c\n" in out
    assert re.search(r"run: update\n  partition b\S+ / b\n  read ", out)
    assert re.search(r"run: a decision commits\n  in b\S+ / b\n    put hidden i\S+, 1024 b", out)
    assert "== SQL" not in out
    assert re.search(r"== Answer\n201 Created\n(.*\n)*x-ms-version: ", out)


def test_statements_of_sql_have_their_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["PUT /c/b", "--sql"]) == 0
    _, _, sql = capsys.readouterr().out.partition("\n== SQL\n")
    assert re.search(
        r"^REPLACE INTO hidden .*\n  b\S+, b, i\S+, \d+, x+\.\.\. \(1024 bytes\)$", sql, re.M
    )
    assert sql.index("BEGIN IMMEDIATE") < sql.index("REPLACE INTO face") < sql.index("\nCOMMIT")


def test_each_call_has_its_file_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["GET /c/b", "--functions"]) == 0
    calls = re.findall(r"^ +(\S+)  (src/\S+):(\d+)$", capsys.readouterr().out, re.M)
    assert len(calls) > 100
    for name, path, line in calls:
        text = (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1]
        simple = name.rpartition(".")[2]
        assert simple in text or text.lstrip().startswith("@") or "<" in simple, (name, text)


def test_a_directory_of_data_is_used_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data", str(tmp_path / "data")]
    body = tmp_path / "body"
    body.write_bytes(b"from a file")
    assert main(["PUT /c/b", *data, "--body", f"@{body}", "--header", "x-ms-meta-a: 1"]) == 0
    assert main(["HEAD /c/b", *data]) == 0
    # What is there already is not made again, and stays as it was.
    assert "Content-Length: 11\n" in capsys.readouterr().out.rpartition("== Answer")[2]


def test_the_debugger_stops_at_a_function(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("where\np method\ncontinue\n"))
    assert main(["PUT /c/b", "--stop-at", "Routes.match"]) == 0
    out = capsys.readouterr().out
    assert "-> operation = endpoint.routes.match(" in out
    assert "(Pdb) 'PUT'\n" in out and "201 Created" in out


def test_what_cannot_be_done_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, text in (
        (["PUT"], "'PUT' is no method and path"),
        (["PUT /c/b", "--header", "odd"], "--header 'odd' has no colon"),
        (["PUT /c/b", "--body", "@/no/such"], "/no/such"),
        (["GET /UPPER/b"], "PUT /UPPER?restype=container: 400"),
        (["GET /c/b", "--stop-at", "no_such"], "no_such was not called"),
    ):
        assert main(arguments) == 1
        assert text in capsys.readouterr().err


def test_a_file_that_is_there_is_not_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--service", "file", "--data", str(tmp_path / "data")]
    assert main(["PUT /s/d/f", *data, "--header", "x-ms-content-length: 7"]) == 0
    assert main(["GET /s/d/f", *data]) == 0
    assert "Content-Length: 7\n" in capsys.readouterr().out.rpartition("== Answer")[2]


def test_a_name_that_is_too_short_is_lengthened() -> None:
    assert lengthened("/c/b?comp=block") == "/ccc/b?comp=block"
    assert lengthened("/ab") == "/aba"
    assert lengthened("/t(PartitionKey='p')") == "/ttt(PartitionKey='p')"
    for whole in ("/", "/?comp=list", "/box/b", "/$batch"):
        assert lengthened(whole) == whole
