"""When `strongroom serve` has a console, what it prints of it, and what its flags refuse."""

from __future__ import annotations

import base64
import contextlib
import socket
from pathlib import Path

import pytest

from strongroom.auth.accounts import Account
from strongroom.cli.exits import Exit
from strongroom.cli.flags.console import console_settings
from strongroom.cli.flags.given import given_values
from strongroom.cli.flags.ports import with_base
from strongroom.cli.flags.table import FLAGS
from strongroom.config import DEFAULT_CONSOLE_PORT, ConfigError, ConsoleSettings
from strongroom.testing.ports import HOST, free_port, port_flags
from strongroom.testing.server import Server
from tests.cli.command import in_process, strongroom
from tests.servers.console.served import Port


def found(*flags: str, **variables: str) -> ConsoleSettings | None:
    """The console of `--name=value` flags and of variables."""
    given: dict[str, list[str]] = {}
    for flag in flags:
        name, _, value = flag.removeprefix("--").partition("=")
        given.setdefault(name, []).append(value or "true")
    if "no-console" in given:
        del given["no-console"]
        given["console"] = ["false"]
    return console_settings(with_base(given_values(FLAGS, given, variables)))


def test_it_is_on_by_default_on_loopback() -> None:
    for flags in ([], ["--host=localhost"], ["--host=::1"], ["--blob-port=12000"]):
        assert found(*flags) == ConsoleSettings(is_asked_for=False), flags


@pytest.mark.parametrize(
    "flags",
    [
        ["--no-console"],
        ["--host=0.0.0.0"],
        ["--host=store.example.net"],
        ["--blob-port=0"],
        ["--one-port=0"],
        ["--port-base=0"],
        ["--smb", "--smb-port=0"],
        ["--table-port=10010"],
        ["--no-console", "--console-port=10011"],
    ],
)
def test_it_is_off_where_nobody_asks_for_it(flags: list[str]) -> None:
    assert found(*flags) is None


def test_it_is_asked_for_by_its_port_or_by_its_name() -> None:
    for flags in (["--console"], ["--console-port=10010"]):
        assert found("--host=0.0.0.0", "--blob-port=0", *flags) == ConsoleSettings()
    assert found("--console-port=0") == ConsoleSettings(port=0)
    assert found(STRONGROOM_CONSOLE_PORT="10011") == ConsoleSettings(port=10011)
    assert found(STRONGROOM_CONSOLE="false") is None


def test_its_settings_are_those_of_the_flags() -> None:
    console = found(
        "--console-url=https://Console.Example.net/",
        "--console-idle=5",
        "--console-operator=shop",
        "--console-oidc-client=page",
        "--oauth-issuer=https://issuer.example",
    )
    assert console == ConsoleSettings(
        is_asked_for=False,
        url="https://console.example.net",
        idle_minutes=5,
        operator="shop",
        oidc_client="page",
    )


@pytest.mark.parametrize(
    "url",
    [
        "console.example.net",
        "https://a/b",
        "https://a?b",
        "ftp://a",
        "https://",
        "https://a b",
        "https://user@a",
        "https://a;script-src *",
        "https://a:99999",
        "https://a:0",
        "https://a:b",
        "https://.",
        "https://b\u00fccher.example",
        "https://a\tb",
        "https://[::1",
    ],
)
def test_what_is_no_origin_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="must be an origin"):
        found(f"--console-url={url}")


@pytest.mark.parametrize("url", ["https://[2001:db8::1]", "http://[::1]:8080"])
def test_an_origin_whose_scripts_a_browser_cannot_be_told_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="bare IPv6 address") as refused:
        found(f"--console-url={url}")
    assert "use a host name" in str(refused.value)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://a:443", "https://a"),
        ("http://A:80/", "http://a"),
        ("http://a:443", "http://a:443"),
        ("HTTPS://a:8443", "https://a:8443"),
    ],
)
def test_an_origin_is_the_one_that_browsers_send(url: str, origin: str) -> None:
    console = found(f"--console-url={url}")
    assert console is not None and console.url == origin


def test_flags_of_no_console_are_refused() -> None:
    with pytest.raises(ConfigError, match="--console-operator does nothing without a console"):
        found("--host=0.0.0.0", "--console-operator=shop")


@pytest.mark.parametrize(
    "flag",
    [
        "--coordination-store=spare=file:///spare",
        "--console-operator=shop",
        "--console-url=https://a",
    ],
)
def test_flags_of_a_console_are_refused_beside_no_console(flag: str) -> None:
    name = flag.partition("=")[0]
    with pytest.raises(ConfigError, match=f"{name} does nothing beside --no-console"):
        found("--no-console", flag)


def test_a_flag_turns_off_a_console_that_other_sources_describe() -> None:
    assert found("--no-console", STRONGROOM_CONSOLE_OPERATOR="shop") is None
    with pytest.raises(ConfigError, match="beside --no-console"):
        found(STRONGROOM_CONSOLE="false", STRONGROOM_CONSOLE_OPERATOR="shop")


def test_an_operator_without_an_account_is_said_and_counts_when_the_account_comes(
    tmp_path: Path,
) -> None:
    port, data = free_port(), tmp_path / "data"
    flags = ("--console-port", str(port), "--console-operator", "shop")
    in_process("account", "add", "bank", "--data", data)
    with Server.start(data=data, flags=flags) as server:
        assert "there is no account 'shop', so no key sees the whole server" in server.output()
        ran = in_process("account", "add", "shop", "--data", data)
        key = ran.out.rpartition("Key: ")[2].strip()
        account = Account("shop", (base64.b64decode(key),))
        assert Port(port).api("who", account).json()["is_operator"] is True
    with Server.start(data=data, flags=flags) as server:
        assert "there is no account" not in server.output()


def test_the_console_is_printed_and_a_taken_port_that_was_asked_for_is_an_error() -> None:
    port = free_port()
    with Server.start(flags=("--console-port", str(port))) as server:
        assert f"\nConsole: http://{HOST}:{port}/\n" in server.output()
        with socket.create_connection((HOST, port), timeout=10):
            pass
        ran = strongroom("serve", "--in-memory", *port_flags(), "--console-port", port)
    assert ran.code == Exit.LISTEN
    assert f"cannot listen on {HOST} port {port} for the console: " in ran.err


def test_a_taken_default_port_is_said_and_skipped() -> None:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(socket.create_server((HOST, DEFAULT_CONSOLE_PORT)))
        except OSError:
            pass  # another program of this machine has it
        # A flag of the console that asks for none.
        server = stack.enter_context(Server.start(flags=("--console-idle", "5")))
        assert f"port {DEFAULT_CONSOLE_PORT} is taken: no console" in server.output()
        assert "Console:" not in server.output()


def test_servers_for_tests_have_none_unless_asked(tmp_path: Path) -> None:
    with Server.start(data=tmp_path / "data") as server:
        assert "Console:" not in server.output()
