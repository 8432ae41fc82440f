"""What `strongroom store status` says of a store in PostgreSQL, and what of that needs an operator.

Lives here: the lines, and the rules by which facts become findings. Must not live here: the
questions to the database (engines/postgres/status.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from strongroom.engines.membership import DEAD_TICKS, LATE_TICKS, shared_name
from strongroom.engines.postgres.status import (
    GatewayStatus,
    OldSnapshot,
    StandbyStatus,
    StoreStatus,
    TableStatus,
)
from strongroom.standby import HOLD
from strongroom.values import TICKS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

_LATE_S: Final = LATE_TICKS / TICKS_PER_S
_DEAD_S: Final = DEAD_TICKS / TICKS_PER_S
_IN_SYNC: Final = ("sync", "quorum")
_OPEN_S_MAX: Final = 3600.0
_AGE_MAX: Final = 5_000_000
_DEAD_ROWS_MIN: Final = 100_000
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


class StoreReport(msgspec.Struct, frozen=True):
    """What was found. `place` says where the database is, without user and password."""

    place: str
    schema: str
    status: StoreStatus
    findings: tuple[str, ...]


def findings(status: StoreStatus) -> Iterator[str]:
    """Yield what needs an operator, a sentence each."""
    if not any(_serves(one) for one in status.gateways):
        yield "no gateway serves this store"
    for gateway in status.gateways:
        if gateway.heartbeat_age_s > _LATE_S:
            age = f"{gateway.heartbeat_age_s:.0f} s"
            yield f"gateway {gateway.number} has sent no heartbeat for {age}"
    if status.synchronous_standby_names and not _may_be_in_sync(status.standbys):
        yield "no standby is in sync, so writes wait until one is"
    for snapshot in status.old_snapshots:
        if snapshot.open_s > _OPEN_S_MAX or snapshot.age > _AGE_MAX:
            yield f"{_snapshot(snapshot)} keeps vacuum from removing dead rows"
    for table in status.tables:
        if table.dead_rows > max(_DEAD_ROWS_MIN, table.live_rows):
            yield f"the table {table.name} has more dead rows than live ones: vacuum is behind"
    if status.apart is not None and status.apart.away:
        yield f"this machine cannot use the place of long bodies: {status.apart.away}"


def lines(report: StoreReport) -> Iterator[str]:
    status = report.status
    yield (
        f"{report.place}: PostgreSQL {status.server_version}, schema {report.schema}, tables of "
        f"version {status.version}{_newer(status)}"
    )
    yield from _rows("gateways", [_gateway(status, one) for one in status.gateways] or ["none"])
    names = status.synchronous_standby_names
    yield from _rows("commits", [f"{status.synchronous_commit}; {_awaited(names)}"])
    yield from _rows("standbys", [*map(_standby, status.standbys)] or ["none"])
    whole_bytes = sum(one.size_bytes for one in status.tables)
    used = f"{_size(status.used_bytes)} of names, records and bodies"
    yield from _rows("data", [f"{used}; {_size(whole_bytes)} in the database"])
    yield from _rows("tables", [*map(_table, status.tables)])
    waiting = f"{status.dropped:,} to be deleted, {status.unadopted:,} on their way in"
    yield from _rows("bodies", [waiting])
    if (apart := status.apart) is not None:
        kept = f"{apart.bodies:,} with {_size(apart.size_bytes)}"
        gone = f"{apart.dropped:,} dropped with {_size(apart.dropped_bytes)}, kept for some days"
        yield from _rows("bodies apart", [f"{apart.place}: {kept}", gone])
    oldest = status.old_snapshots[:1]
    yield from _rows("oldest snapshot", [_snapshot(one) for one in oldest] or ["none"])
    for finding in report.findings:
        yield f"Finding: {finding}."


def _may_be_in_sync(standbys: Sequence[StandbyStatus]) -> bool:
    """Whether one is, or this role may not know. Its name and place are shown to every role."""
    return any(one.sync_state in (*_IN_SYNC, "") for one in standbys)


def _awaited(names: str) -> str:
    if names:
        return f"waits for {names}"
    return "waits for no standby: the loss of this disk is the loss of what no backup has"


def _serves(gateway: GatewayStatus) -> bool:
    """Whether it has the right to serve, alone or with others. A dead gateway keeps it in the table
    until another one starts."""
    names = (HOLD, shared_name(HOLD, gateway.number))
    return not _is_dead(gateway) and any(name.decode() in gateway.holds for name in names)


def _is_dead(gateway: GatewayStatus) -> bool:
    return gateway.heartbeat_age_s > _DEAD_S


def _newer(status: StoreStatus) -> str:
    if status.version >= status.program_version:
        return ""
    return f"; `strongroom store migrate` brings them to version {status.program_version}"


def _gateway(status: StoreStatus, gateway: GatewayStatus) -> str:
    does = "serves" if _serves(gateway) else "dead" if _is_dead(gateway) else "waits"
    beats = f"heartbeat {gateway.heartbeat_age_s:.1f} s ago"
    known = "" if gateway.knows == status.program_version else _known(gateway.knows)
    return f"{gateway.number} {does}; {beats}{known}"


def _known(version: int) -> str:
    return f"; its program knows tables up to version {version}"


def _standby(standby: StandbyStatus) -> str:
    if not standby.sync_state:
        return f"{standby.name or 'one'}: more is shown to a role with pg_read_all_stats"
    behind = f"{_size(standby.behind_bytes)} behind"
    return f"{standby.name}: {standby.sync_state}, {standby.state}, {behind}"


def _table(table: TableStatus) -> str:
    vacuumed = "never" if table.vacuumed_s is None else f"{table.vacuumed_s:,.0f} s ago"
    rows = f"{table.live_rows:,} rows, {table.dead_rows:,} dead"
    return f"{table.name}: {_size(table.size_bytes)}, {rows}, vacuumed {vacuumed}"


def _snapshot(one: OldSnapshot) -> str:
    state = f", {one.state}" if one.state else ""
    since = f", open for {one.open_s:,.0f} s" if one.open_s else ""
    return f"{one.kind} {one.name} ({one.age:,} transactions old{since}{state})"


def _rows(name: str, texts: Sequence[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f"  {'' if number else name:<16} {text}"


def _size(size_bytes: int) -> str:
    """Return a size in the largest unit of which there is at least one."""
    if size_bytes < 0:
        return "unknown"
    amount, unit = float(size_bytes), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"
