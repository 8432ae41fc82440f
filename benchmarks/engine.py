"""The load engine's Python side: compiles it, writes its plan, reads its report.

The hot loop is in C (`engine.c`), so that the client costs a small part of what a server does. This
module knows nothing about storage; requests come from `workloads.py`.
"""

import hashlib
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

CYCLE: Final = "\x01I"  # the number of the cycle, 10 digits
CONNECTION: Final = "\x01C"  # number of the connection, 4 digits
SCATTERED: Final = "\x01M"  # the cycle scattered over `modulo` values, 6 digits
CAPTURED: Final = "\x01a"  # the first captured text of this cycle
ESCAPED: Final = "\x01b"  # a piece of a body, see Found
FURTHER: Final = "\x01c"  # a second piece, see Found

_WIDTHS: Final = {b"I": 10, b"C": 4, b"M": 6}
_SOURCES: Final = ("engine.c", "engine_plan.c")
_GRACE_S: Final = 60


class EngineFailed(Exception):
    """The engine could not be compiled or did not finish."""


# Longer bodies are random bytes without marks.
_TEMPLATE_BYTES_MAX: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Found:
    """A piece of an answer's body that later requests use as `mark`, percent-encoded.

    Arguments:
        mark: ESCAPED or FURTHER.
        before, after: the texts around the piece.
    """

    mark: str
    before: str
    after: str

    def encode(self) -> bytes:
        """Return the capture in the engine's format."""
        variable = ord(self.mark[1]) - ord("a")
        line = f"b {variable} 1 {len(self.before)} {len(self.after)}\n"
        return f"{line}{self.before}{self.after}".encode()


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a cycle.

    Arguments:
        name: the name of the step in the report, without spaces.
        head: request line and headers, a template.
        body: a template too if it is short.
        accepted: statuses that let the cycle go on; any other ends it and counts as bad.
        captured_header: the answer's header whose value becomes CAPTURED.
        found: pieces of the answer's body that become marks.
    """

    name: str
    head: bytes
    body: bytes = b""
    accepted: tuple[int, ...] = (200,)
    captured_header: str = ""
    found: tuple[Found, ...] = ()

    @property
    def is_template(self) -> bool:
        """Whether the body contains marks; long bodies are sent as they are."""
        return b"\x01" in self.body and len(self.body) < _TEMPLATE_BYTES_MAX

    def encode(self) -> bytes:
        """Return the step in the engine's format."""
        is_head = int(self.head.startswith(b"HEAD "))
        accepted = " ".join(map(str, self.accepted))
        line = (
            f"{self.name} {len(self.head)} {len(self.body)} {int(self.is_template)} {is_head} "
            f"{len(self.accepted)} {accepted} {bool(self.captured_header) + len(self.found)}\n"
        )
        capture = f"h 0 0 {len(self.captured_header)} 0\n{self.captured_header}"
        captures = [capture.encode()] if self.captured_header else []
        captures += [one.encode() for one in self.found]
        return b"".join((line.encode(), self.head, self.body, *captures))


@dataclass(frozen=True, slots=True)
class Load:
    """The work of one run of the engine.

    Arguments:
        steps: the requests of one cycle; the first `prologue` of them run once per connection.
        connections: how many connections run the steps at once.
        measured_s, warm_up_s: the durations; with `cycles_max` the load ends after so many cycles.
        modulo: the upper bound of SCATTERED; it shares no factor with 7919.
    """

    steps: tuple[Step, ...]
    connections: int
    measured_s: float
    warm_up_s: float = 0.0
    cycles_max: int = 0
    modulo: int = 1000
    prologue: int = 0


class StepReport(msgspec.Struct, frozen=True):
    """The measurements of one step; statuses are counted as texts."""

    name: str
    count: int
    mean_ms: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    by_status: dict[str, int]


class Report(msgspec.Struct, frozen=True):
    """The measurements of a load; `requests` includes the warm-up, the steps do not."""

    window_s: float
    elapsed_s: float
    client_cpu_s: float
    requests: int
    bytes_in: int
    bytes_out: int
    bad: int
    cycles: int
    reconnects: int
    io_errors: int
    steps: list[StepReport]

    def step(self, name: str) -> StepReport:
        """Return the report of the step with this name."""
        return next(step for step in self.steps if step.name == name)


def sent_length(body: bytes) -> int:
    """Return the length of a template after its marks are replaced; captured values are not
    counted."""
    return len(body) + sum(_WIDTHS[mark] - 2 for mark in re.findall(rb"\x01([ICM])", body))


def run(host: str, port: int, load: Load) -> Report:
    """Run a load against a numeric address.

    Raises:
        EngineFailed: the engine could not be compiled, could not connect, or took far too long.
    """
    with tempfile.NamedTemporaryFile(prefix="load-plan-") as plan:
        plan.write(_plan(host, port, load))
        plan.flush()
        limit_s = load.measured_s + load.warm_up_s + _GRACE_S
        try:
            done = subprocess.run(
                [_executable(), plan.name], stdout=subprocess.PIPE, timeout=limit_s, check=True
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise EngineFailed(f"the load engine failed: {error}") from error
    return msgspec.json.decode(done.stdout, type=Report)


def _plan(host: str, port: int, load: Load) -> bytes:
    head = (
        f"{host} {port} {load.connections} {int(load.measured_s * 1000)} "
        f"{int(load.warm_up_s * 1000)} {load.cycles_max} {load.modulo} {len(load.steps)} "
        f"{load.prologue}\n"
    )
    return b"".join((head.encode(), *(step.encode() for step in load.steps)))


@cache
def _executable() -> str:
    """Compile the engine once for each version of its source, and return its path."""
    folder = Path(__file__).parent
    texts = b"".join((folder / name).read_bytes() for name in (*_SOURCES, "engine.h"))
    cached = Path(tempfile.gettempdir()) / f"strongroom-bench-{os.getuid()}"
    cached.mkdir(mode=0o700, exist_ok=True)
    target = cached / f"engine-{hashlib.sha256(texts).hexdigest()[:16]}"
    if not target.exists():
        part = target.with_suffix(f".{os.getpid()}")
        command = ["cc", "-O2", "-o", str(part), *(str(folder / name) for name in _SOURCES)]
        try:
            subprocess.run(command, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise EngineFailed(f"the load engine needs a C compiler: {error}") from error
        part.rename(target)
    return str(target)
