"""The results of a run: rows with their targets, printed as a table and written as JSON."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.sampling import Machine
from benchmarks.servers import AZURITE


class Target(msgspec.Struct, frozen=True):
    """The target of a row: at least or at most `bound`, for its ratio or for Strongroom's value."""

    bound: float
    at_least: bool
    of_ratio: bool

    def reached(self, value: float | None, ratio: float | None) -> bool | None:
        """Whether the target is reached; None if the row was not measured."""
        measured = ratio if self.of_ratio else value
        if measured is None:
            return None
        return measured >= self.bound if self.at_least else measured <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}{'x' if self.of_ratio else ''}"


def ratio_at_least(bound: float) -> Target:
    """Return a target for the ratio to the other server's rate or time."""
    return Target(bound, at_least=True, of_ratio=True)


# (measure, connections) -> the project's target.
TARGETS: Final = {
    ("GET 1 KiB", 32): ratio_at_least(6),
    ("PUT 1 KiB", 32): ratio_at_least(10),
    ("append 4 KiB", 32): ratio_at_least(3),
    ("page 4 KiB write", 32): ratio_at_least(3),
    ("batch delete of 256", 32): ratio_at_least(3),
    ("lease cycle", 32): ratio_at_least(4),
    ("compare-and-swap", 32): ratio_at_least(4),
    ("64 MiB up", 1): ratio_at_least(3),
    ("64 MiB up", 32): ratio_at_least(3),
    ("64 MiB up into a folder", 1): ratio_at_least(0.6),
    ("64 MiB down", 1): ratio_at_least(1.5),
    ("64 MiB down", 32): ratio_at_least(1.5),
    ("insert entity", 32): ratio_at_least(2.5),
    ("point query", 32): ratio_at_least(4),
    ("merge entity", 32): ratio_at_least(2),
    ("filter 1,000 of 5,000 entities", 32): ratio_at_least(1.5),
    ("filter 1,000 of 50,000 entities", 32): ratio_at_least(1.5),
    ("filter after a merge, 1,000 of 5,000 entities", 32): ratio_at_least(1.5),
    ("queue cycle", 32): ratio_at_least(3),
    ("list a page of 5,000", 1): ratio_at_least(10),
    ("GET, many blobs : few", 1): Target(1.3, at_least=False, of_ratio=True),
    ("PUT, many blobs : few", 1): Target(1.3, at_least=False, of_ratio=True),
    ("restart", 0): Target(1.0, at_least=False, of_ratio=False),
    ("peak memory", 0): Target(120, at_least=False, of_ratio=False),
    ("lock cycle in memory", 1): Target(20_000, at_least=True, of_ratio=False),
    ("lock cycle in memory, asyncio", 1): Target(20_000, at_least=True, of_ratio=False),
    ("lock cycle", 1): ratio_at_least(1),
    ("fair lock, max : min share", 16): Target(1.2, at_least=False, of_ratio=False),
    ("ids, take(1000)", 1): Target(1_000_000, at_least=True, of_ratio=False),
    ("gate, open to let through", 50): Target(50, at_least=False, of_ratio=False),
    ("gate, 10 % of hints lost: stranded", 50): Target(0, at_least=False, of_ratio=False),
    ("idle waiter", 16): Target(0.2, at_least=False, of_ratio=False),
}
TARGETS_OF_ENGINES: Final = {
    ("GET 1 KiB over PostgreSQL", 32): ratio_at_least(0.35),
    ("PUT 1 KiB over PostgreSQL", 32): ratio_at_least(0.35),
    ("lease cycle over PostgreSQL", 32): ratio_at_least(0.35),
    ("insert entity over PostgreSQL", 32): ratio_at_least(0.4),
    ("list a page of 5,000 over PostgreSQL", 1): Target(1.5, at_least=False, of_ratio=True),
    **{
        (f"CPU of {name} over two gateways", 16): Target(1.15, at_least=False, of_ratio=True)
        for name in ("GET 1 KiB", "PUT 1 KiB", "lease cycle", "insert entity")
    },
}
TARGETS_OF_FILES: Final = {
    ("SMB put 256 MiB, encrypted", 1): ratio_at_least(0.3),
    ("SMB get 256 MiB, encrypted", 1): ratio_at_least(0.3),
    ("SMB put files of 4 KiB", 1): ratio_at_least(0.5),
    ("SMB get files of 4 KiB", 1): ratio_at_least(0.5),
    ("SMB list 10,000 files", 1): ratio_at_least(0.33),
    ("Put Range 4 KiB", 32): ratio_at_least(0.5),
    ("small GET beside an SMB put of 256 MiB: p99 added", 1): Target(
        20, at_least=False, of_ratio=False
    ),
}
UPLOAD_SHARE_OF_DISK: Final = 0.8  # the share of raw append and sync, instead of the ratio


class Ratio(msgspec.Struct, frozen=True):
    """The ratio of two series measured in alternation: the median of the pairs, and the quartiles.
    A disturbance of the machine for some seconds hardly changes this median."""

    median: float
    low: float
    high: float


def ratio_of(numerators: Sequence[float], denominators: Sequence[float]) -> Ratio | None:
    """Return the ratio of two series of equal length, pair by pair; None if one of them is
    missing."""
    if not numerators or not denominators:
        return None
    pairs = [a / b for a, b in zip(numerators, denominators, strict=True) if b]
    if len(pairs) < 2:
        return Ratio(pairs[0], pairs[0], pairs[0]) if pairs else None
    low, middle, high = statistics.quantiles(pairs, n=4, method="inclusive")
    return Ratio(middle, low, high)


class Row(msgspec.Struct, frozen=True):
    """One measure.

    Arguments:
        measure, connections: what was measured; 0 if the measure has no connections.
        unit: the unit of the two values.
        strongroom: the median over the turns; None if not measured.
        beside: the same for the other server.
        ratio: how many times better Strongroom is; for "many : few" how many times more expensive.
            It is the median over pairs of turns; `spread` has the quartiles.
        reached: whether the target is reached; None without a target.
        slices: every value in the order of the turns: Strongroom's, then the other server's.
        note: further facts.
        other: the name of the other server.
    """

    measure: str
    connections: int
    unit: str
    strongroom: float | None
    beside: float | None
    ratio: float | None
    spread: tuple[float, float] | None
    target: str
    reached: bool | None
    slices: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    note: str = ""
    other: str = AZURITE


def row(
    measure: str,
    connections: int,
    unit: str,
    strongroom: float | None,
    beside: float | None,
    *,
    ratio: Ratio | None = None,
    slices: tuple[tuple[float, ...], tuple[float, ...]] = ((), ()),
    note: str = "",
    other: str = AZURITE,
) -> Row:
    """Return a row with its target from the table."""
    target = {**TARGETS, **TARGETS_OF_FILES, **TARGETS_OF_ENGINES}.get((measure, connections))
    middle = None if ratio is None else ratio.median
    spread = None if ratio is None else (ratio.low, ratio.high)
    reached = target.reached(strongroom, middle) if target and strongroom is not None else None
    text = str(target) if target else ""
    return Row(
        measure, connections, unit, strongroom, beside, middle, spread, text, reached, slices,
        note, other,
    )  # fmt: skip


class Results(msgspec.Struct, frozen=True):
    """The results of one run."""

    began: str
    scope: str
    versions: dict[str, str]
    machine: Machine
    disk_syncs_per_s: int
    disk_mb_s: int
    rows: list[Row]

    def write(self, path: Path) -> None:
        """Write the results as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1))

    def text(self) -> str:
        """Return a readable table; the notes of a row stand under it."""
        facts = self.machine
        servers = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        head = (
            f"{servers}; {facts.cores} x {facts.processor}, {facts.memory_gib:g} GiB, "
            f"{facts.file_system}, load {facts.load_average:g}; "
            f"Python {facts.python}, {facts.python_calls_per_s / 1e6:.0f} million calls a second\n"
            f"the disk at the beginning: {self.disk_syncs_per_s:,} appends of 1 KiB with fdatasync "
            f"a second, {self.disk_mb_s:,} MB/s of 4 MiB appends with fdatasync\n"
        )
        table = [_HEADINGS, *(cells(one) for one in self.rows)]
        widths = [max(len(line[column]) for line in table) for column in range(len(_HEADINGS))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in table
        ]
        noted = [
            f"{line}\n      {one.note}" if one.note else line
            for line, one in zip(lines[1:], self.rows, strict=True)
        ]
        return "\n".join([head, lines[0], *noted])


_HEADINGS: Final = (
    "measure", "conns", "Strongroom", "beside it", "unit", "ratio", "target", "reached",
)  # fmt: skip


def cells(one: Row) -> tuple[str, ...]:
    """Return a row as texts, in the order of the headings, without its note."""
    reached = {True: "yes", False: "NO", None: ""}[one.reached]
    ratio = "" if one.ratio is None else f"{one.ratio:.2f}x"
    if one.spread is not None and one.spread[0] < one.spread[1]:
        ratio += f" ({one.spread[0]:.2f}-{one.spread[1]:.2f})"
    connections = str(one.connections or "")
    beside = number(one.beside) if one.beside is None else f"{number(one.beside)} {one.other}"
    values = (number(one.strongroom), beside)
    return (one.measure, connections, *values, one.unit, ratio, one.target, reached)


def number(value: float | None) -> str:
    """Return a value with about three digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
