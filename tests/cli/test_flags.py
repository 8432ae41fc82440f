"""The table of the flags of `strongroom serve`, and the settings that it makes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from strongroom.cli.flags import kinds
from strongroom.cli.flags.flag import Flag
from strongroom.cli.flags.given import ValueSource, given_values
from strongroom.cli.flags.rules import agreed
from strongroom.cli.flags.settings import settings_of
from strongroom.cli.flags.table import FLAGS
from strongroom.config import AccountSources, RolesSource, Settings, without_settings

# Fields of Settings that flags make together (flags/settings.py).
COMPOSED = {
    "setup", "data", "smb", "accounts", "tls", "oauth", "roles", "rehydration_s", "log",
    "observation", "console", "store",
}  # fmt: skip
# Fields that no flag sets: tests of the server itself do.
OF_TESTS = {"drain_timeout_s", "strict"}
# Fields that other programs set (docs/reference/serving.md): `serve` has no flags for them.
OF_PROGRAMS = {"hosts", "services", "memory_max_bytes", "allow_unsigned_tokens"}


def settings(typed: dict[str, Sequence[str]], **environment: str) -> Settings:
    values = agreed(FLAGS, given_values(FLAGS, typed, environment))
    return settings_of(FLAGS, values, environment)


def test_without_flags_the_settings_are_the_usual_ones() -> None:
    usual = Settings()
    found = settings({})
    # The files are in the data directory; which directory that is, only the command knows.
    assert found.accounts.file is not None and found.roles.file is not None
    found = msgspec.structs.replace(found, accounts=AccountSources(), roles=RolesSource())
    # People at a machine get a console; Settings by themselves, for tests say, have none.
    assert found.console is not None and not found.console.is_asked_for
    found = msgspec.structs.replace(found, console=None)
    assert found == usual


def test_every_field_of_the_settings_is_reached_by_a_flag() -> None:
    fields = {field.name for field in msgspec.structs.fields(Settings)}
    direct = [flag.setting for flag in FLAGS if flag.setting is not None]
    assert len(direct) == len(set(direct))
    others = COMPOSED | OF_TESTS | OF_PROGRAMS
    assert set(direct) | others == fields
    assert not set(direct) & others


def test_every_flag_is_declared_once_and_names_others_that_exist() -> None:
    names = [flag.name for flag in FLAGS]
    assert len(names) == len(set(names))
    assert len({flag.variable for flag in FLAGS}) == len(FLAGS)
    for flag in FLAGS:
        assert set(flag.excludes) | set(flag.needs) <= set(names), flag.name
        assert bool(flag.excludes) == bool(flag.because), flag.name
        assert flag.repeats == (flag.default == ()), flag.name
        # The console is on by default in some places only, so its switch has a third state.
        is_off = flag.default is (None if flag.name == "console" else False)
        assert not flag.kind.is_switch or is_off, flag.name


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_every_flag_explains_itself(flag: Flag) -> None:
    assert flag.help.endswith(".")
    assert flag.repeats == ("may be repeated" in flag.help)


def test_the_environment_counts_where_no_flag_is_given() -> None:
    variables = {
        "STRONGROOM_BLOB_PORT": "20001",
        "STRONGROOM_TLS": "True",
        "STRONGROOM_METRICS_ANYWHERE": "1",
        "STRONGROOM_TEST_CLOCK": "0",
        "STRONGROOM_OWN_HOST": "one.example.net  Two.example.net",
        "STRONGROOM_REHYDRATION_DELAY": "15h",
        "STRONGROOM_LOG_LEVEL": "",
    }
    found = settings({}, **variables)
    assert (found.blob_port, found.tls is not None, found.metrics_anywhere) == (20001, True, True)
    assert (found.test_clock, found.log.level) == (False, "warning")
    assert found.own_hosts == ("one.example.net", "two.example.net")
    assert found.rehydration_s == (54_000.0, 54_000.0)
    found = settings({"blob-port": ["20002"], "tls": ["false"]}, **variables)
    assert (found.blob_port, found.tls) == (20002, None)


def test_the_days_of_the_scrub_are_a_whole_number() -> None:
    assert settings({"scrub-days": ["7"]}).scrub_days == 7
    assert settings({}, STRONGROOM_SCRUB_DAYS="0").scrub_days == 0
    read = kinds.whole_number("DAYS", 3650).read
    assert read("3650") == 3650
    for text in ("", "-1", "3651", "1.5", "7d", "\u0663", "1" * 400):
        with pytest.raises(ValueError, match="from 0 to 3650"):
            read(text)


def test_a_value_knows_its_source() -> None:
    values = given_values(FLAGS, {"host": ["::1"]}, {"STRONGROOM_ONE_PORT": "0"})
    assert (values["host"].source, values["host"].label) == (ValueSource.COMMAND_LINE, "--host")
    one_port = values["one-port"]
    assert (one_port.source, one_port.label) == (ValueSource.ENVIRONMENT, "STRONGROOM_ONE_PORT")
    assert values["blob-port"].source is ValueSource.DEFAULT


def test_an_environment_without_settings_has_no_variable_of_any_flag() -> None:
    variables = {flag.variable: "x" for flag in FLAGS} | {"AZURITE_ACCOUNTS": "x", "HOME": "y"}
    assert without_settings(variables) == {"HOME": "y"}
