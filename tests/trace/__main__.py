"""One request, and what runs for it: `python -m tests.trace "PUT /c/b"`.

Lives here: the command line. Must not live here: observation (recording.py), texts (report.py).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from strongroom.app import DataUnusable
from tests.conformance.answer import Answer
from tests.trace import report
from tests.trace.plans import Sent, plan
from tests.trace.recording import Recorder
from tests.trace.sending import SERVICES, NotPrepared, Place, answer_to
from tests.trace.steps import ENGINE, steps_of

_DESCRIPTION = """\
Send one request to a fresh server in this process, as the development account, and show what ran
for it: the steps of its path, the calls of the engine, and the answer. What the path needs is made
before: its container, queue, table or share, and the blob, file or entity if the request does not
make it itself."""
_EXAMPLES = """\
examples:
  python -m tests.trace "PUT /c/b"                            Put Blob of 1 KiB
  python -m tests.trace "GET /c/b" --sql                      and the SQL of the embedded engine
  python -m tests.trace "PUT /c/b?comp=metadata" --header "x-ms-meta-a: 1" --functions
  python -m tests.trace "POST /q/messages" --service queue
  python -m tests.trace "GET /t(PartitionKey='p',RowKey='r')" --service table
  python -m tests.trace "PUT /s/folder/f?comp=range" --service file
  python -m tests.trace "PUT /c/b" --body @README.md --data /tmp/traced
  python -m tests.trace "PUT /c/b" --stop-at put_blob          the debugger stops there
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1: the request could not be sent."""
    given = _parser().parse_args(arguments)
    try:
        sent = _sent(given)
        recorder = Recorder(ENGINE, given.stop_at or "")
        with Place.of(given.data, given.sql) as place:
            planned = plan(given.service, sent)
            answer = answer_to(planned, given.service, place, recorder)
    except (DataUnusable, NotPrepared, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{planned.request.method} {planned.request.target}\n\n")
    sys.stdout.writelines(f"{line}\n" for line in _lines(given, recorder, answer))
    if recorder.stop_at:
        sys.stderr.write(f"{recorder.stop_at} was not called; --functions lists what was\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.trace",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("request", help="a method and a path without the account: 'PUT /c/b'")
    add("--service", choices=SERVICES, default="blob", help="blob if not given")
    add("--body", default="", metavar="TEXT|@FILE", help="the body; @FILE reads a file")
    add("--header", action="append", default=[], metavar="'NAME: VALUE'", help="may be repeated")
    add("--data", type=Path, metavar="DIR", help="use this data directory instead of memory")
    add("--sql", action="store_true", help="show statements of SQL; implies a data directory")
    add("--functions", action="store_true", help="show each call with its file and line")
    add("--stop-at", metavar="FUNCTION", help="debug from the first call of Class.function on")
    return parser


def _sent(given: argparse.Namespace) -> Sent:
    """Return the request as it was given. Raises: ValueError, OSError."""
    method, _, target = given.request.partition(" ")
    if not target.startswith("/"):
        raise ValueError(f"{given.request!r} is no method and path; an example is 'PUT /c/b'")
    text: str = given.body
    body = Path(text[1:]).read_bytes() if text.startswith("@") else text.encode()
    headers = {}
    for line in given.header:
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError(f"--header {line!r} has no colon; an example is 'x-ms-meta-a: 1'")
        headers[name.strip()] = value.strip()
    return Sent(method.upper(), target.strip(), headers, body)


def _lines(given: argparse.Namespace, recorder: Recorder, answer: Answer) -> Iterator[str]:
    steps = steps_of(recorder.events)
    yield "== Steps"
    yield from report.steps(steps, given.functions)
    yield "\n== Calls of the engine"
    yield from report.engine_calls(steps)
    if given.sql:
        yield "\n== SQL"
        yield from report.statements(recorder.events)
    yield "\n== Answer"
    yield from report.answer(answer)


if __name__ == "__main__":
    sys.exit(main())
