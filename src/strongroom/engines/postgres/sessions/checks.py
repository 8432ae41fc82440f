"""What a session must be before the store uses it: the settings in effect, and that it is writable.

Lives here: the settings that each session makes for itself, the checks, and their refusals as
sentences for operators. Source: PostgreSQL's manual, "Server Configuration".
"""

from __future__ import annotations

from typing import Final

import msgspec

from strongroom.engines.postgres.sessions.session import DatabaseSession, DatabaseUnfit

_SETTINGS: Final = {
    "default_transaction_isolation": "read committed",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "transaction_timeout": "0",
    "client_connection_check_interval": "2000",
    # The server detects that this machine is gone.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "client_min_messages": "warning",  # a commit that no standby has confirmed is warned of
    "client_encoding": "UTF8",
    "work_mem": "16MB",  # a page of a scan stays in memory
    # Each statement has one good plan, by the index.
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
_LEVELS: Final = ("", "off", "local", "remote_write", "on", "remote_apply")
_READ: Final = (
    *("synchronous_commit", "fsync", "full_page_writes", "transaction_read_only"),
    *("server_encoding", "max_connections", "synchronous_standby_names", "server_version_num"),
)
_TIMELINE: Final = "pg_walfile_name(pg_current_wal_lsn())"
_VERSION_MIN: Final = 140_000


class Demands(msgspec.Struct, frozen=True):
    """What is asked of a server beyond what every store needs.

    Attributes:
        level: the least synchronous_commit, if the URL sets one.
        standby: whether commits must be on a standby, too, before they are answered.
    """

    level: str | None = None
    standby: bool = False


async def settle(session: DatabaseSession, schema: str, demands: Demands) -> dict[str, str]:
    """Make a session's settings, and return those of the server that were checked.

    Raises: DatabaseUnfit.
    """
    # First of all, and by itself: the role may have a limit that the next statement exceeds.
    await session.simple("SET statement_timeout = 0")
    sets = ", ".join(f"({_quoted(name)}, {_quoted(value)})" for name, value in _SETTINGS.items())
    await session.simple(
        f"SELECT set_config(s.name, s.value, false) FROM (VALUES {sets}) AS s(name, value) "
        "WHERE s.name IN (SELECT name FROM pg_settings)"
    )
    await session.simple(
        "SELECT set_config('search_path', quote_ident($1) || ', pg_temp', false)", schema
    )
    shown = ", ".join(f"current_setting('{name}')" for name in _READ)
    (row,) = await session.simple(f"SELECT {shown}, pg_is_in_recovery()")
    found = dict(zip((*_READ, "recovery"), row, strict=True))
    if (refusal := refusal_of(found, demands)) is not None:
        raise DatabaseUnfit(refusal)
    # A value of the session itself does not change when the server reads its settings again.
    await session.simple(
        "SELECT set_config('synchronous_commit', $1, false)", found["synchronous_commit"]
    )
    session.timeline = int((await session.simple(f"SELECT {_TIMELINE}"))[0][0][:8], 16)
    return found


def refusal_of(found: dict[str, str], demands: Demands) -> str | None:
    """Why a server with these settings cannot carry a store; None if it can."""
    if found["recovery"] != "f":
        return (
            "this PostgreSQL is a standby, whose data may be old; give all hosts in the URL, with "
            "target_session_attrs=read-write, so that the primary is found"
        )
    if found["transaction_read_only"] != "off":
        return "this session may only read; set default_transaction_read_only to off"
    if int(found["server_version_num"]) < _VERSION_MIN:
        return "this PostgreSQL is older than 14; use version 14 or later"
    if (unsafe := unsafe_server(found, demands)) is not None:
        return unsafe
    level = found["synchronous_commit"]
    least = max("remote_write", demands.level or "", key=_LEVELS.index)
    if _LEVELS.index(level) < _LEVELS.index(least):
        return (
            f"synchronous_commit is {level}, but at least {least} is needed, else a crash or a "
            "failover loses what was acknowledged; set it to on for the role of the store"
        )
    if found["server_encoding"] != "UTF8":
        return "the database's encoding is not UTF8; create one with ENCODING 'UTF8'"
    return None


def unsafe_server(found: dict[str, str], demands: Demands) -> str | None:
    """Why a server may lose what was acknowledged, by what can change while it runs."""
    for name in ("fsync", "full_page_writes"):
        if found[name] != "on":
            return f"{name} is off, so a crash could lose what was acknowledged; set {name} to on"
    if demands.standby and not found["synchronous_standby_names"]:
        return (
            "this PostgreSQL has no synchronous standby, and --store-needs-standby asks for one; "
            "set synchronous_standby_names"
        )
    return None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
