"""What a server must be before it carries a store, as a table of its settings."""

from __future__ import annotations

from typing import Final

import pytest

from strongroom.engines.postgres.sessions.checks import Demands, refusal_of

_GOOD: Final = {
    "recovery": "f",
    "transaction_read_only": "off",
    "server_version_num": "150018",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "synchronous_standby_names": "",
    "server_encoding": "UTF8",
}
_ROWS: Final[tuple[tuple[dict[str, str], Demands, str | None], ...]] = (
    ({}, Demands(), None),
    ({"synchronous_commit": "remote_write"}, Demands(), None),
    ({"synchronous_commit": "local"}, Demands(), "synchronous_commit is local"),
    ({"synchronous_commit": "local"}, Demands(level="local"), "at least remote_write"),
    ({"synchronous_commit": "on"}, Demands(level="remote_apply"), "at least remote_apply"),
    ({"synchronous_commit": "off"}, Demands(), "synchronous_commit is off"),
    ({}, Demands(standby=True), "--store-needs-standby"),
    ({"synchronous_standby_names": "ANY 1 (a, b)"}, Demands(standby=True), None),
    ({"fsync": "off"}, Demands(), "fsync is off"),
    ({"full_page_writes": "off"}, Demands(), "full_page_writes is off"),
    ({"recovery": "t"}, Demands(), "is a standby"),
    ({"transaction_read_only": "on"}, Demands(), "may only read"),
    ({"server_version_num": "130012"}, Demands(), "older than 14"),
    ({"server_encoding": "SQL_ASCII"}, Demands(), "UTF8"),
)


@pytest.mark.parametrize(("changed", "demands", "refusal"), _ROWS)
def test_a_server_is_refused_in_words(
    changed: dict[str, str], demands: Demands, refusal: str | None
) -> None:
    text = refusal_of(_GOOD | changed, demands)
    if refusal is None:
        assert text is None
    else:
        assert text is not None and refusal in text
