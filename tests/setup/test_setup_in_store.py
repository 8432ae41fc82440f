"""Setups of a server over a database: accounts and roles are added to the store."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from strongroom.app import App
from strongroom.cli.identities.database import DatabasePlace
from strongroom.clock import SystemClock
from strongroom.config import ConfigError, SetupSource
from tests.app.gateways_of_a_store import settings_over
from tests.over_postgres import new_store

SETUP = """
[[accounts]]
name = "orders"
keys = ["a2V5"]

[[accounts.roles]]
role = "Storage Blob Data Reader"
principal = "{principal}"
"""


class SetUpStore:
    """A store, and the setups that are applied to it."""

    def __init__(self, folder: Path) -> None:
        self.store = new_store()
        self.place = DatabasePlace(self.store)
        self._file = folder / "setup.toml"

    def apply(self, text: str, *, overwrites: bool = False) -> list[str]:
        """Apply a setup; return what it has told."""
        self._file.write_text(text)
        self._file.chmod(0o600)
        lines: list[str] = []
        source = SetupSource(self._file, overwrites, os.environ, only=True)
        settings = settings_over(self.store, setup=source)
        asyncio.run(App(settings, SystemClock(), lines.append).set_up())
        return lines

    def roles(self) -> list[tuple[str, str]]:
        return [(one.principal, one.account) for one in self.place.roles()]


def test_accounts_and_roles_are_added_once_and_keep_their_keys(tmp_path: Path) -> None:
    made = SetUpStore(tmp_path)
    lines = made.apply(SETUP.format(principal="one"))
    assert "created  account orders" in lines
    (account,) = made.place.accounts()
    assert account.keys == (b"key",)
    assert made.roles() == [("one", "orders")]
    made.place.change_accounts(lambda found: tuple(one.rotated(b"new") for one in found))
    lines = made.apply(SETUP.format(principal="two"))
    assert "left     account orders: it keeps its keys" in lines
    assert any("role" in line and line.startswith("differs") for line in lines)
    assert made.place.accounts()[0].keys == (b"new", b"key")
    assert made.roles() == [("one", "orders"), ("two", "orders")]
    made.apply(SETUP.format(principal="two"), overwrites=True)
    assert made.roles() == [("two", "orders")]


def test_what_is_wrong_is_told_before_anything_is_added(tmp_path: Path) -> None:
    made = SetUpStore(tmp_path)
    wrong = (
        SETUP.format(principal="one") + '\n[[accounts]]\nname = "more"\nkeys = ["env:NOT_SET"]\n'
    )
    with pytest.raises(ConfigError, match="NOT_SET"):
        made.apply(wrong)
    with pytest.raises(ConfigError, match="'more' yet, so it needs keys"):
        made.apply('[[accounts]]\nname = "more"\n')
    assert (made.place.accounts(), made.roles()) == ((), [])


def test_the_known_key_is_not_added_for_other_machines(tmp_path: Path) -> None:
    made = SetUpStore(tmp_path)
    file = tmp_path / "known.toml"
    file.write_text('[[accounts]]\nname = "devstoreaccount1"\n')
    file.chmod(0o600)
    made.apply(SETUP.format(principal="one"))
    settings = settings_over(made.store, setup=SetupSource(file, only=True), host="0.0.0.0")
    with pytest.raises(ConfigError, match="development key"):
        asyncio.run(App(settings, SystemClock()).set_up())
    assert [one.name for one in made.place.accounts()] == ["orders"]
