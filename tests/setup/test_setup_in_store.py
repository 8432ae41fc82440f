"""Setups of a server over a database: accounts and roles are added to the store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from strongroom.app import App
from strongroom.auth.accounts import Account
from strongroom.clock import SystemClock
from strongroom.config import ConfigError, SetupSource
from strongroom.database import DatabaseSettings
from strongroom.setup.document import SetupError
from tests.app.gateways_of_a_store import settings_over
from tests.over_postgres import new_store

ROLES = """
    [[accounts.roles]]
    role = "Storage Blob Data Reader"
    principals = ["someone"]
"""


def applied(store: DatabaseSettings, file: Path, *, overwrites: bool = False) -> list[str]:
    """Apply a setup; return what it has told."""
    lines: list[str] = []
    settings = settings_over(store, setup=SetupSource(file, overwrites, only=True))
    asyncio.run(App(settings, SystemClock(), lines.append).set_up())
    return lines


def kept(store: DatabaseSettings) -> tuple[tuple[Account, ...], list[str]]:
    """Return the accounts of the store, and the principals that have roles there."""
    from strongroom.cli.identities.database import DatabasePlace

    place = DatabasePlace(store)
    return place.accounts(), [one.principal for one in place.roles()]
