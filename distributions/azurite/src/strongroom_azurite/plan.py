"""What a command line asks for: the server's settings, and what is to be said about it.

Lives here: the effect of each flag, remarks and warnings. Must not live here: the environment and
streams (main.py), serving (serving.py). What is allowed here and refused by `strongroom serve` is
written on docs/azurite-command.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from strongroom.auth.accounts import Account
from strongroom.config import (
    AccountSources,
    LogSettings,
    OAuth,
    ServiceHosts,
    Settings,
    TlsFiles,
    has_development_key,
    is_loopback,
)
from strongroom_azurite.accounts import ReadAccounts
from strongroom_azurite.command_line import Given, UsageError
from strongroom_azurite.commands import DEFAULT_HOST, DEFAULT_PORTS, Command, Service
from strongroom_azurite.flags import Flag
from strongroom_azurite.lines import Address
from strongroom_azurite.old_folder import data_in

_MIB: Final = 1024 * 1024
_PORT_MAX: Final = 65535


@dataclass(frozen=True, slots=True)
class Environment:
    """What the plan needs to know of the process's surroundings.

    Attributes:
        here: the current folder.
        memory_bytes: the machine's memory.
        accounts: the accounts of AZURITE_ACCOUNTS.
        ignored: the variables that are set and have no effect.
    """

    here: Path
    memory_bytes: int
    accounts: ReadAccounts
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pfx:
    """A certificate with its key in one file (PKCS #12), and the password."""

    file: Path
    password: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done.

    Attributes:
        settings: of the server, without its certificate if that is `pfx`.
        services: the services to open, in the order of the lines.
        location: the folder of the data; None = in memory.
        imports: whether files of Azurite in `location` are imported first.
        is_silent: whether nothing but warnings is said.
        remarks: about flags without effect, one a flag; none if the command is silent.
        warnings: of risk, which are printed in any case.
    """

    settings: Settings
    services: tuple[Service, ...]
    location: Path | None
    imports: bool
    is_silent: bool
    pfx: Pfx | None
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def address(self, service: Service, port: int | None = None) -> Address:
        """Return where a service listens; `port` is the one that the system chose for 0."""
        scheme = "http" if self.settings.tls is None and self.pfx is None else "https"
        asked: int = getattr(self.settings, f"{service}_port")
        host = self.settings.host_of(service).strip("[]")
        return Address(scheme, host, asked if port is None else port)


def plan(command: Command, given: Given, environment: Environment) -> Plan:
    """Return what to do. Raises UsageError for flags that cannot be used."""
    in_memory = given.has("inMemoryPersistence")
    if in_memory and given.has("location"):
        raise UsageError("--inMemoryPersistence keeps nothing; it does not go with --location")
    if in_memory and given.has("import"):
        raise UsageError("--inMemoryPersistence keeps nothing; it does not go with --import")
    if given.has("extentMemoryLimit") and not in_memory:
        raise UsageError("--extentMemoryLimit is for --inMemoryPersistence; add that flag")
    asks_for_files = given.has("fileHost") or given.has("filePort")
    services = (*command.services, "file") if asks_for_files else command.services
    location = None if in_memory else environment.here / (given.value("location") or "")
    tls, pfx = _certificate(given)
    settings = Settings(
        data=None if location is None else data_in(location),
        hosts=ServiceHosts(*(_host(given, service) for service in DEFAULT_PORTS)),
        services=services,
        blob_port=_port(given, "blob"),
        queue_port=_port(given, "queue"),
        table_port=_port(given, "table"),
        file_port=_port(given, "file"),
        accounts=AccountSources(environment.accounts.accounts),
        tls=tls,
        allow_development_key=True,
        allow_unsigned_tokens=True,
        oauth=_oauth(given),
        memory_max_bytes=_memory_bytes(given, environment) if in_memory else None,
        log=LogSettings(debug_file=_debug_log(given, environment.here)),
    )
    _check_ports(settings)
    silent = given.has("silent")
    planned = Plan(settings, services, location, given.has("import"), silent, pfx)
    remarks = tuple(_remarks(given, environment))
    warnings = tuple(_warnings(planned, environment.accounts))
    return replace(planned, remarks=() if silent else remarks, warnings=warnings)


def _host(given: Given, service: Service) -> str:
    return given.value(f"{service}Host") or DEFAULT_HOST


def _port(given: Given, service: Service) -> int:
    name = f"{service}Port"
    text = given.value(name)
    if text is None:
        return DEFAULT_PORTS[service]
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= _PORT_MAX):
        raise UsageError(f"--{name} {text}: a port is a number from 0 to {_PORT_MAX}")
    return int(text)


def _check_ports(settings: Settings) -> None:
    seen: dict[tuple[str, int], Service] = {}
    for service in settings.services:
        port: int = getattr(settings, f"{service}_port")
        other = seen.setdefault((settings.host_of(service), port), service)
        if port and other != service:
            raise UsageError(f"port {port} is given twice, by --{other}Port and --{service}Port")


def _number(given: Given, name: str) -> float | None:
    """Return the value of a flag that takes a number of at least 0; None if it is not given."""
    text = given.value(name)
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise UsageError(f"--{name} {text}: give a number of at least 0")
    return number


def _memory_bytes(given: Given, environment: Environment) -> int:
    megabytes = _number(given, "extentMemoryLimit")
    return environment.memory_bytes // 2 if megabytes is None else round(megabytes * _MIB)


def _certificate(given: Given) -> tuple[TlsFiles | None, Pfx | None]:
    certificate, key, password = (given.value(name) for name in ("cert", "key", "pwd"))
    if certificate is None:
        if key is not None or password is not None:
            raise UsageError("--key and --pwd are for --cert, which is missing")
        return None, None
    if key is not None:
        return TlsFiles(Path(certificate), Path(key)), None
    if password is None:
        raise UsageError("--cert needs --key FILE if it is PEM, or --pwd PASSWORD if it is PFX")
    return None, Pfx(Path(certificate), password)


def _oauth(given: Given) -> OAuth | None:
    level = given.value("oauth")
    if level is None:
        return None
    if level.lower() != "basic":
        raise UsageError(f"--oauth {level}: the only level is basic")
    return OAuth()


def _debug_log(given: Given, here: Path) -> Path | None:
    text = given.value("debug")
    return None if text is None else here / text


def _remarks(given: Given, environment: Environment) -> Iterator[str]:
    repeated = given.repeated()
    for flag in given.flags():
        texts = [flag.remark, _detail(flag, given)]
        if flag in repeated:
            texts.append(f"is given several times, and the last counts: {given.value(flag.name)}")
        said = "; ".join(filter(None, texts))
        if said:
            yield f"--{flag.name} {said}"
    for word in given.words:
        yield f"{word!r} has no effect: the commands take flags only"
    for variable in environment.ignored:
        yield f"{variable} has no effect"


def _detail(flag: Flag, given: Given) -> str:
    if flag.name.endswith("KeepAliveTimeout"):
        _number(given, flag.name)
    if flag.name == "pwd" and given.has("key"):
        return "has no effect beside --key"
    return ""


def _warnings(planned: Plan, accounts: ReadAccounts) -> Iterator[str]:
    if accounts.warning:
        yield accounts.warning
    where = " or ".join(
        planned.address(service).authority
        for service in planned.services
        if not is_loopback(planned.settings.host_of(service))
    )
    reached = f"anyone who reaches {where} can read and write everything"
    if not where:
        return
    known = [account for account in accounts.accounts if has_development_key(account)]
    if known:
        yield f"{reached} ({_whose_key(known)})"
    if planned.settings.oauth is not None:
        yield f"{reached} (--oauth basic accepts tokens that anybody can write)"


def _whose_key(known: list[Account]) -> str:
    names = ", ".join(account.name for account in known)
    return f"the key of account {names} is the development key, which everybody knows"
