"""`strongroom status`: what a running server says of itself.

Lives here: flags, and what is shown. Must not live here: requests (asking.py), the rules of what
needs an operator (report.py).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strongroom.cli.durations import seconds
from strongroom.cli.exits import Exit, fail
from strongroom.cli.plain import plain

if TYPE_CHECKING:
    from strongroom.cli.watching.asking import ServerAddress
    from strongroom.cli.watching.report import Measured, StatusReport

HELP = """
Say how a running server is.

It asks the server for its health and its metrics, which need no key. A server shows
its metrics to its own machine only, unless it was started with --metrics-anywhere.
Without them, status, version and a full disk are known.

The command ends with 0 if all is well, with 1 if something needs an operator, and with
69 if the server does not answer. So it fits into cron and health checks.

Examples

  strongroom status
  strongroom status https://store.example.net:10000 --ca-file ca.pem
  strongroom status --backup-within 26h
  strongroom status --json
"""
_URL = "http://127.0.0.1:10000"
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def status(
    url: Annotated[str, typer.Argument(metavar="[URL]", help="The server.")] = _URL,
    ca_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificates to trust (PEM), for https.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(parser=seconds, help="How long each answer may take.")
    ] = 10.0,
    backup_within: Annotated[
        float | None,
        typer.Option(
            parser=seconds,
            metavar="DURATION",
            help="The age that the last backup may have, such as 26h.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Ask a server, show what it says, and end with 1 if something needs an operator."""
    import msgspec

    from strongroom.cli.watching.asking import NoAnswer, ServerAddress, UnusableAddress
    from strongroom.cli.watching.report import NotAStrongroom

    if timeout <= 0:
        fail(Exit.USAGE, "--timeout: give more than 0 seconds")
    try:
        address = ServerAddress.parse(url, ca_file)
    except UnusableAddress as error:
        fail(Exit.USAGE, str(error))
    try:
        report = _asked(url, address, timeout, backup_within)
    except (NoAnswer, NotAStrongroom) as error:
        fail(Exit.UNAVAILABLE, f"{url}: {plain(str(error))}")
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        for line in _lines(report):
            typer.echo(plain(line))
    if report.findings:
        raise typer.Exit(Exit.REFUSED.value)


def _asked(
    url: str, address: ServerAddress, timeout_s: float, backup_within_s: float | None
) -> StatusReport:
    """Return what the server says. Raises: NoAnswer, NotAStrongroom."""
    from strongroom.cli.watching import report
    from strongroom.clock import SystemClock
    from strongroom.values import datetime_of

    health = report.health_of(address.get("/.strongroom/health", timeout_s).body)
    answer = address.get("/.strongroom/metrics", timeout_s)
    now_s = datetime_of(SystemClock().wall_ticks()).timestamp()
    measured = None
    if answer.status == 200:
        text = answer.body.decode("utf-8", "replace")
        measured = report.measured_of(text, now_s)
    problems = tuple(report.findings(health, measured, backup_within_s, now_s))
    return report.StatusReport(url, health, measured, problems)


def _lines(report: StatusReport) -> Iterator[str]:
    health = report.health
    yield f"{report.url}: {health.status}, version {health.version}"
    yield _row("durable", "yes" if health.durable else "no: it keeps nothing")
    if report.measured is None:
        yield "Metrics are not shown to this machine: see --metrics-anywhere of strongroom serve."
    else:
        yield from _measured_lines(report.measured)
    for finding in report.findings:
        yield f"Finding: {finding}."


def _measured_lines(measured: Measured) -> Iterator[str]:
    if measured.uptime_s is not None:
        yield _row("uptime", str(datetime.timedelta(seconds=int(measured.uptime_s))))
    yield _row("connections", _number(measured.connections))
    yield _row("requests", _number(measured.requests))
    failing = _number(measured.jobs_failing)
    yield _row("jobs", f"{_number(measured.jobs_running)} running, {failing} failing")
    if measured.disk_free_bytes is None:
        return  # in memory, or its disk cannot be asked
    data = (measured.records_bytes, measured.log_bytes, measured.segments_bytes)
    names = ("records", "log", "segments")
    parts = ", ".join(f"{n} {_size(b)}" for n, b in zip(names, data, strict=True))
    yield _row("data", f"{_size(sum(one or 0 for one in data))} ({parts})")
    yield _row("disk free", _size(measured.disk_free_bytes))
    whole = measured.ballast_whole_bytes
    yield _row("ballast", f"{_size(measured.ballast_bytes)} of {_size(whole)}")
    yield _row("damaged reads", _number(measured.damaged_reads))
    yield _row("last backup", _moment(measured.last_backup_s))
    yield _row("scrub", _scrub(measured))


def _scrub(measured: Measured) -> str:
    if measured.scrub_progress is None:
        return "off"
    progress = f"{measured.scrub_progress:.0%} of its pass"
    complete = f"last complete: {_moment(measured.scrubbed_s)}"
    return f"{progress}, {complete}, {_number(measured.scrub_damaged)} damaged places"


def _row(name: str, text: str) -> str:
    return f"  {name:<14} {text}"


def _number(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def _moment(seconds_since_1970: float | None) -> str:
    if seconds_since_1970 is None:
        return "none"
    moment = datetime.datetime.fromtimestamp(seconds_since_1970, datetime.UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _size(size_bytes: int | None) -> str:
    """Return a size in the largest unit of which there is at least one."""
    if size_bytes is None:
        return "unknown"
    amount, unit = float(size_bytes), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"
