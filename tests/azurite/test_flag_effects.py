"""Each flag of the table has its effect, or says that it has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from strongroom.auth.accounts import Account
from strongroom.config import OAuth, TlsFiles
from strongroom.servers.http.settings import HttpSettings
from strongroom.servers.requests.admission import OLDEST_VERSION
from strongroom_azurite import __version__, main
from strongroom_azurite.accounts import ReadAccounts, read_accounts
from strongroom_azurite.command_line import UsageError, parse
from strongroom_azurite.commands import (
    AZURITE,
    AZURITE_TABLE,
    COMMANDS,
    DEFAULT_HOST,
    DEFAULT_PORTS,
    Command,
)
from strongroom_azurite.flags import FLAGS, Flag
from strongroom_azurite.plan import Environment, Pfx, Plan, plan

MIB = 1024 * 1024
HERE = Path("/here")
SURROUNDINGS = Environment(HERE, 1000 * MIB, read_accounts(""))


def planned(
    *words: str, command: Command = AZURITE, environment: Environment = SURROUNDINGS
) -> Plan:
    return plan(command, parse(command, words), environment)


@dataclass(frozen=True)
class Effect:
    """A flag in use: the words that are typed, and what then holds that does not hold without."""

    flag: str
    words: tuple[str, ...]
    holds: Callable[[Plan], bool]


def _says(text: str) -> Callable[[Plan], bool]:
    return lambda plan: plan.remarks == (text,)


def _listens(service: str, host: str, port: int) -> Callable[[Plan], bool]:
    return lambda plan: (
        service in plan.services
        and plan.settings.host_of(service) == host
        and getattr(plan.settings, f"{service}_port") == port
    )


EFFECTS = (
    *(
        Effect(f"{name}Host", (f"--{name}Host", "::1"), _listens(name, "::1", port))
        for name, port in DEFAULT_PORTS.items()
    ),
    *(
        Effect(f"{name}Port", (f"--{name}Port", "1234"), _listens(name, DEFAULT_HOST, 1234))
        for name in DEFAULT_PORTS
    ),
    *(
        Effect(
            f"{name}KeepAliveTimeout",
            (f"--{name}KeepAliveTimeout", "5"),
            _says(
                f"--{name}KeepAliveTimeout has no effect: an idle connection to {name.title()} is "
                "closed after 120 s"
            ),
        )
        for name in ("blob", "queue", "table")
    ),
    Effect("location", ("-l", "d"), lambda p: p.settings.data == HERE / "d" / "strongroom-data"),
    Effect("import", ("--import",), lambda p: p.imports),
    Effect(
        "inMemoryPersistence",
        ("--inMemoryPersistence",),
        lambda p: (
            p.location is p.settings.data is None and p.settings.memory_max_bytes == 500 * MIB
        ),
    ),
    Effect(
        "extentMemoryLimit",
        ("--inMemoryPersistence", "--extentMemoryLimit", "0.5"),
        lambda p: p.settings.memory_max_bytes == MIB // 2,
    ),
    Effect(
        "cert",
        ("--cert", "c.pem", "--key", "k.pem"),
        lambda p: (
            p.settings.tls == TlsFiles(Path("c.pem"), Path("k.pem"))
            and p.address("blob").url == "https://127.0.0.1:10000"
        ),
    ),
    Effect(
        "key",
        ("--cert", "c.pem", "--key", "k.pem", "--pwd", "x"),
        lambda p: p.settings.tls is not None and p.remarks == ("--pwd has no effect beside --key",),
    ),
    Effect(
        "pwd",
        ("--cert", "c.pfx", "--pwd", "0123"),
        lambda p: (
            p.pfx == Pfx(Path("c.pfx"), "0123")
            and p.address("table").url == "https://127.0.0.1:10002"
        ),
    ),
    Effect("oauth", ("--oauth", "BASIC"), lambda p: p.settings.oauth == OAuth()),
    Effect("silent", ("-s", "--loose"), lambda p: p.is_silent and p.remarks == ()),
    Effect("debug", ("-d", "log/f"), lambda p: p.settings.log.debug_file == HERE / "log" / "f"),
    Effect(
        "loose",
        ("-L",),
        _says(
            "--loose has no effect: a request for what is not served is refused, so that nothing "
            "is lost"
        ),
    ),
    Effect(
        "skipApiVersionCheck",
        ("--skipApiVersionCheck",),
        _says(
            "--skipApiVersionCheck has no effect: every version since 2009-09-19 is accepted "
            "without it"
        ),
    ),
    Effect(
        "disableProductStyleUrl",
        ("--disableProductStyleUrl",),
        _says(
            "--disableProductStyleUrl has no effect: only host names below blob.localhost and its "
            "like name an account"
        ),
    ),
    Effect(
        "disableTelemetry",
        ("--disableTelemetry",),
        _says("--disableTelemetry has no effect: this program sends nothing to anybody"),
    ),
)
ANSWERED = {"version", "help"}


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda effect: effect.flag)
def test_a_flag_has_its_effect(effect: Effect) -> None:
    assert effect.holds(planned(*effect.words))
    assert not effect.holds(planned())


def test_what_the_remarks_say_of_the_server_is_so() -> None:
    remarks = " ".join(flag.remark for flag in FLAGS)
    assert f"is closed after {HttpSettings().idle_timeout_s:.0f} s" in remarks
    assert f"every version since {OLDEST_VERSION} is accepted" in remarks


def test_every_flag_of_the_table_is_tried() -> None:
    assert {effect.flag for effect in EFFECTS} | ANSWERED == {flag.name for flag in FLAGS}


@pytest.mark.parametrize(
    "flag", [flag for flag in FLAGS if flag.remark], ids=lambda flag: flag.name
)
def test_a_flag_without_effect_says_so_once(flag: Flag) -> None:
    words = [f"--{flag.name}", *(["7"] if flag.value else [])]
    assert planned(*words, *words).remarks == (f"--{flag.name} {flag.remark}",)
    assert planned(*words, "--silent").remarks == ()
    assert planned(*words).settings == planned().settings


@pytest.mark.parametrize("word", ["--version", "-v", "version"])
def test_the_version_is_the_only_line_on_standard_output(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(AZURITE, [word], {}) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{__version__}\n"
    assert "strongroom-azurite" in printed.err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_help_names_each_flag_of_a_command(
    command: Command, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(command, [word], {}) == 0
    printed = capsys.readouterr()
    for flag in FLAGS:
        assert (f"--{flag.name}" in printed.out) == flag.belongs_to(command), flag.name
    assert printed.out.startswith(f"Usage: {command.name} [FLAGS]\n")
    assert max(map(len, printed.out.splitlines())) <= 100
    assert printed.err == ""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--inMemoryPersistence", "-l", "d"], "it does not go with --location"),
        (["--inMemoryPersistence", "--import"], "it does not go with --import"),
        (["--extentMemoryLimit", "64"], "is for --inMemoryPersistence"),
        (["--inMemoryPersistence", "--extentMemoryLimit", "x"], "a number of at least 0"),
        (["--inMemoryPersistence", "--extentMemoryLimit=-1"], "a number of at least 0"),
        (["--inMemoryPersistence", "--extentMemoryLimit", "nan"], "a number of at least 0"),
        (["--blobKeepAliveTimeout", "soon"], "a number of at least 0"),
        (["--blobPort", "abc"], "--blobPort abc: a port is a number from 0 to 65535"),
        (["--blobPort", "65536"], "a port is a number from 0 to 65535"),
        (["--blobPort=-1"], "a port is a number from 0 to 65535"),
        (["--queuePort", "10000"], "port 10000 is given twice, by --blobPort and --queuePort"),
        (["--cert", "c"], "--cert needs --key FILE if it is PEM, or --pwd PASSWORD if it is PFX"),
        (["--key", "k"], "--key and --pwd are for --cert"),
        (["--pwd", "p"], "--key and --pwd are for --cert"),
        (["--oauth", "full"], "--oauth full: the only level is basic"),
    ],
)
def test_what_cannot_be_meant_is_a_wrong_flag(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError) as refusal:
        planned(*words)
    assert text in str(refusal.value)
    assert main.run(AZURITE, words, {}) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith("azurite: ") and "azurite --help lists all flags" in printed.err


def test_a_flag_with_two_values_and_words_are_remarked() -> None:
    plan = planned("start", "--blobPort", "1", "--blobPort", "2")
    assert plan.settings.blob_port == 2
    assert plan.remarks == (
        "--blobPort is given several times, and the last counts: 2",
        "'start' has no effect: the commands take flags only",
    )


def test_variables_without_effect_are_remarked() -> None:
    environment = Environment(HERE, MIB, read_accounts(""), ("AZURITE_DB",))
    assert planned(environment=environment).remarks == ("AZURITE_DB has no effect",)


def test_services_that_are_not_asked_for_are_left_out() -> None:
    assert planned().settings.services == ("blob", "queue", "table")
    assert planned("--fileHost", "::1").settings.services == ("blob", "queue", "table", "file")
    assert planned(command=AZURITE_TABLE).settings.services == ("table",)


KNOWN = "(the key of account devstoreaccount1 is the development key, which everybody knows)"
TOKENS = "(--oauth basic accepts tokens that anybody can write)"
REACHED = "anyone who reaches 0.0.0.0:10000 can read and write everything"


def test_what_other_machines_can_do_is_warned_of_even_in_silence() -> None:
    words = ("--blobHost", "0.0.0.0", "--oauth", "basic")
    for silent in ((), ("--silent",)):
        assert planned(*words, *silent).warnings == (f"{REACHED} {KNOWN}", f"{REACHED} {TOKENS}")
    own = Environment(HERE, MIB, ReadAccounts((Account("own", (b"own",)),)))
    assert planned(*words, environment=own).warnings == (f"{REACHED} {TOKENS}",)
    assert planned("--blobHost", "0.0.0.0", environment=own).warnings == ()
    assert planned("--oauth", "basic").warnings == ()
    assert planned("--blobHost", "localhost", "--queueHost", "::1").warnings == ()


def test_a_value_of_accounts_that_cannot_be_read_is_warned_of_even_in_silence() -> None:
    environment = Environment(HERE, MIB, read_accounts("secret"))
    [warning] = planned("--silent", environment=environment).warnings
    assert warning.startswith("AZURITE_ACCOUNTS cannot be read")
