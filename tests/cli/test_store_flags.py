"""The flags of a database: where its URL comes from, what they go with, and what is never shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.cli.flags.given import given_values
from strongroom.cli.flags.rules import agreed
from strongroom.cli.flags.settings import settings_of
from strongroom.cli.flags.table import FLAGS
from strongroom.config import Settings
from strongroom.database import DatabaseSettings
from tests.cli.command import in_process

URL = "postgresql://u@127.0.0.1:1/store"
SECRET = "s3cret"
WITH_PASSWORD = f"postgresql://u:{SECRET}@127.0.0.1:1/store"


def settings(typed: dict[str, Sequence[str]], **environment: str) -> Settings:
    values = agreed(FLAGS, given_values(FLAGS, typed, environment))
    return settings_of(FLAGS, values, environment)


def test_a_store_is_the_data_directory_unless_a_database_is_named() -> None:
    assert settings({}).store is None
    found = settings({"store": [URL]})
    assert found.store == DatabaseSettings(URL)
    assert found.data is not None, "accounts and certificates are files of the gateway"


def test_the_flags_of_a_database_are_its_settings() -> None:
    typed: dict[str, Sequence[str]] = {
        "store": [URL],
        "store-connections": ["20"],
        "store-quota": ["200GiB"],
        "store-schema": ["orders"],
        "store-needs-standby": ["true"],
    }
    assert settings(typed).store == DatabaseSettings(URL, 20, 200 * 2**30, "orders", True)


def test_a_folder_of_bodies_is_a_setting_in_one_form() -> None:
    typed: dict[str, Sequence[str]] = {"store": [URL], "bodies": ["file:///shared/"]}
    found = settings(typed).store
    assert found is not None
    assert (found.bodies, found.keep_dropped_s) == ("file:///shared", 7 * 86400)
    for text, seconds in (("36h", 36 * 3600), ("0s", 0), ("2d", 2 * 86400)):
        kept = settings({**typed, "keep-dropped": [text]}).store
        assert kept is not None
        assert kept.keep_dropped_s == seconds


def test_what_is_no_folder_of_bodies_is_refused() -> None:
    for place in ("/shared", "file://shared", "file:///", "s3://pool", "file:///a/../b"):
        code, text = refused("--store", URL, "--bodies", place)
        assert (code, "file:///shared" in text) == (Exit.USAGE, True)
    assert refused("--store", URL, "--bodies", "file:///a", "--keep-dropped", "7")[0] == Exit.USAGE
    code, text = refused("--store", URL, "--keep-dropped", "7d")
    assert "--bodies" in text


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1", ("10.0.0.1", 0)),
        ("gateway1.example.net:10100", ("gateway1.example.net", 10100)),
        ("[2001:db8::1]:10100", ("2001:db8::1", 10100)),
        ("[2001:db8::1]", ("2001:db8::1", 0)),
        ("2001:db8::1", ("2001:db8::1", 0)),
    ],
)
def test_a_gateway_may_name_its_address(text: str, address: tuple[str, int]) -> None:
    typed: dict[str, Sequence[str]]
    typed = {"store": [URL], "store-mode": ["active-active"], "gateway-address": [text]}
    found = settings(typed).store
    assert found is not None
    assert found.gateway_address == address


def test_the_url_may_come_from_the_environment_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"{WITH_PASSWORD}\n")
    file.chmod(0o600)
    named = DatabaseSettings(WITH_PASSWORD)
    assert settings({}, STRONGROOM_STORE=WITH_PASSWORD).store == named
    in_file = DatabaseSettings(WITH_PASSWORD, file=file)
    assert settings({"store-file": [str(file)]}).store == in_file
    assert settings({}, STRONGROOM_STORE_FILE=str(file)).store == in_file
    # A flag counts more than a variable.
    assert settings({"store-file": [str(file)]}, STRONGROOM_STORE=URL).store == in_file


def refused(*flags: str, **environment: str) -> tuple[int, str]:
    ran = in_process("serve", *flags, **environment)
    assert SECRET not in ran.out + ran.err
    assert ran.code != 0
    return ran.code, ran.err


def test_a_password_is_refused_where_everybody_sees_it() -> None:
    code, text = refused("--store", WITH_PASSWORD)
    assert code == Exit.USAGE
    assert "STRONGROOM_STORE" in text
    assert "--store-file" in text


def test_a_url_that_cannot_be_used_is_not_repeated(tmp_path: Path) -> None:
    broken = f"postgresql://u:{SECRET}@{SECRET}@db/store"
    file = tmp_path / "url"
    file.write_text(broken)
    file.chmod(0o600)
    configured = tmp_path / "strongroom.toml"
    configured.write_text(f'store = "{broken}"\n')
    configured.chmod(0o600)
    assert refused("--store", broken)[0] == Exit.USAGE
    assert refused(STRONGROOM_STORE=broken)[0] == Exit.SETTINGS
    assert refused("--store-file", str(file))[0] == Exit.SETTINGS
    assert refused("--config", str(configured))[0] == Exit.SETTINGS


def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(URL)
    file.chmod(0o622)
    assert refused("--store-file", str(file)) == (
        Exit.SETTINGS,
        f"strongroom: other users may write {file}: chmod go-w {file}\n",
    )
    assert refused("--store-file", str(tmp_path / "none"))[0] == Exit.SETTINGS


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--store", URL, "--in-memory"), "keeps nothing; it does not go with --store"),
        (("--store", URL, "--scrub-days", "7"), "it does not go with --scrub-days"),
        (("--store", URL, "--store-file", "f"), "it does not go with --store-file"),
        (("--store-connections", "9"), "does nothing without --store or --store-file"),
        (("--store-quota", "1GiB"), "does nothing without --store or --store-file"),
        (("--store", URL, "--store-connections", "1"), "give a number from 2 to 500"),
        (("--store", URL, "--store-quota", "5GB"), "give a size such as"),
        (("--store", URL, "--store-schema", 'a"b'), "give a name of lower-case letters"),
        (("--gateway-address", "10.0.0.1"), "does nothing without --store or --store-file"),
        (("--store", URL, "--gateway-address", "10.0.0.1"), "needs --store-mode active-active"),
        (("--store", URL, "--gateway-address", "0.0.0.0"), "another machine can connect to"),
        (("--store", URL, "--gateway-address", "[::]:5"), "another machine can connect to"),
        (("--store", URL, "--gateway-address", "h:70000"), "give an address like"),
        (("--store", URL, "--gateway-address", "h:"), "give an address like"),
        (("--store", URL, "--gateway-address", ":5"), "give an address like"),
        (("--store", URL, "--gateway-address", "https://h"), "give an address like"),
    ],
)
def test_flags_that_do_not_go_together(flags: Sequence[str], reason: str) -> None:
    code, text = refused(*flags)
    assert code == Exit.USAGE
    assert reason in text
