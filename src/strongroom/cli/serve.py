"""`strongroom serve`: turns flags and environment into settings, then serves until a signal.

Lives here: flags, signals, what is printed. Must not live here: how a server is put together
(app.py), what settings mean (config.py).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from strongroom.cli.exits import Exit, fail
from strongroom.cli.ports import Port, PortBase, with_ports

if TYPE_CHECKING:
    from strongroom.app import App
    from strongroom.config import SelfSigned, Settings, TlsFiles
    from strongroom.engines.base import EngineError

T = TypeVar("T")
_log = logging.getLogger(__name__)

HELP = """
Serve until SIGTERM or SIGINT.

Without flags it serves the development account on this machine, so that the
connection string UseDevelopmentStorage=true works, and keeps its data in
./strongroom-data.

Accounts come from --account, from the environment (STRONGROOM_ACCOUNTS, else
AZURITE_ACCOUNTS: NAME:KEY or NAME:KEY1:KEY2, with ; between accounts) and from
the accounts file, which is read again when it has changed. If no account is
given, the development account is served.

Bearer tokens (OAuth) are refused unless --oauth-issuer and --oauth-keys say
whose are accepted. strongroom role says what their users may do.

Examples

  strongroom serve
  strongroom serve --data /srv/strongroom --tls
  strongroom serve --host 0.0.0.0 --cert cert.pem --key key.pem
  strongroom serve --host 0.0.0.0 --own-host store.example.net
  strongroom serve --in-memory --test-clock --port-base 0
  strongroom serve --one-port 8080
  strongroom serve --smb
  STRONGROOM_ACCOUNTS='orders:a2V5' strongroom serve --blob-port 11000

Exit codes are those of strongroom --help.
"""

# The flags under their headings, as --help shows them.
SECTIONS = (
    ("Data", ("--data", "--in-memory")),
    (
        "Addresses and ports",
        (
            *("--host", "--ports", "--port-base", "--blob-port", "--queue-port", "--table-port"),
            *("--file-port", "--one-port", "--host-suffix"),
        ),
    ),
    ("Accounts", ("--accounts-file", "--account", "--allow-development-key")),
    ("TLS", ("--tls", "--cert", "--key", "--require-https")),
    ("File shares over SMB", ("--smb", "--smb-port", "--smb-encryption")),
    (
        "Bearer tokens and roles",
        (
            *("--oauth", "--oauth-issuer", "--oauth-keys", "--oauth-audience", "--oauth-tenant"),
            "--roles-file",
        ),
    ),
    (
        "Copies and archived blobs",
        ("--copy-source-host", "--rehydration-delay", "--rehydration-delay-high"),
    ),
    ("Watching", ("--log-level", "--log-format", "--metrics-anywhere", "--own-host")),
    ("Tests", ("--test-clock",)),
)

_HOST_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
# The thresholds of Python's three generations of objects: new objects, and passes of the generation
# below. A pass delays all requests. Requests and ended connections leave no cycles, so nearly all
# objects are freed without a pass. One of the second generation looks at some 4,500 objects, which
# takes some milliseconds at most. One of the third looks at all of them, so it is rare.
GC_THRESHOLDS = (1_500, 1, 3_500)

_DATA = "Where everything is kept; created when it is missing."
_ACCOUNT = (
    "NAME:KEY or NAME:KEY1:KEY2, keys in base64. For development only: "
    "every user of this machine can see it in ps."
)
_ALLOW = "Serve the well-known development key to other machines too. It protects nothing."
_SUFFIX = "A domain below which a label is an account, beside blob.localhost and its like."
_SOURCE = (
    "Copies read from listed hosts only, private ones too: NAME, *.SUFFIX or ADDRESS, "
    "with or without :PORT."
)
_CERT = "Certificate for TLS (PEM), with --key."
_KEY = "Its private key (PEM), without a password."
_ONE_PORT = (
    "One more port for all services: /blob/ACCOUNT/..., and so for queue, table and file; "
    "a host name like ACCOUNT.blob.localhost works too."
)
_TLS = "TLS with a certificate made by the server."
_REQUIRE_HTTPS = (
    "Refuse requests over plain HTTP (400 AccountRequiresHttps), which share the ports with TLS."
)
RequireHttps = Annotated[bool, typer.Option("--require-https", help=_REQUIRE_HTTPS)]
_ACCOUNTS = "Accounts file (default: accounts.json in --data)."
_OWN_HOST = (
    "A name by which clients may reach /.strongroom/ (health, metrics), beside IP addresses, "
    "localhost, --host and --host-suffix; may be repeated."
)

OnePort = Annotated[int | None, typer.Option(metavar="PORT", help=_ONE_PORT, min=0, max=65535)]
_OAUTH = (
    "basic: accept bearer tokens without checking their signatures. For development, on this "
    "machine only."
)
_ISSUER = "Accept bearer tokens of this issuer (their claim iss), with --oauth-keys."
_KEYS = "The issuer's public keys: a JWK Set in a file, or at an https URL."
_AUDIENCE = (
    "What bearer tokens must be for (their claim aud); may be repeated. Default: "
    "https://storage.azure.com, and https://ACCOUNT.blob.core.windows.net and its like."
)
_TENANT = "Accept bearer tokens of this tenant only (their claim tid)."
_ROLES = "Roles file (default: roles.json in --data)."
_REHYDRATION = (
    "How long an archived blob takes to become readable again after Set Blob Tier or Copy Blob, "
    "such as 15h, 30m or 10s."
)
_REHYDRATION_HIGH = "The same with x-ms-rehydrate-priority: High (default: as --rehydration-delay)."

_SMB = "Serve file shares over SMB 3 too; what is printed says how to mount one."
_SMB_PORT = "Port of SMB, with --smb; 0 takes a free one."
_SMB_ENCRYPTION = (
    "required: sessions of SMB are encrypted. offered: a client may choose to sign only, and SMB "
    "2.1 is served too."
)
Smb = Annotated[bool, typer.Option("--smb", help=_SMB)]
SmbPort = Annotated[int, typer.Option(help=_SMB_PORT, min=0, max=65535)]
SmbEncryption = Annotated[Literal["required", "offered"], typer.Option(help=_SMB_ENCRYPTION)]

Data = Annotated[Path, typer.Option(help=_DATA, envvar="STRONGROOM_DATA")]
InMemory = Annotated[bool, typer.Option("--in-memory", help="Keep nothing: for tests.")]
_BLOB_PORT = "Port of the Blob service; 0 takes a free one."
BlobPort = Annotated[int, typer.Option(help=_BLOB_PORT, min=0, max=65535)]
QueuePort = Annotated[int, typer.Option(help="Port of the Queue service.", min=0, max=65535)]
TablePort = Annotated[int, typer.Option(help="Port of the Table service.", min=0, max=65535)]
FilePort = Annotated[int, typer.Option(help="Port of the File service.", min=0, max=65535)]
AllowKey = Annotated[bool, typer.Option("--allow-development-key", help=_ALLOW)]
_METRICS = "Metrics for other machines too."
MetricsAnywhere = Annotated[bool, typer.Option("--metrics-anywhere", help=_METRICS)]
Rehydration = Annotated[str, typer.Option(help=_REHYDRATION)]
RehydrationHigh = Annotated[str | None, typer.Option(help=_REHYDRATION_HIGH)]
TestClock = Annotated[bool, typer.Option("--test-clock", help="Let tests move the clock.")]
Level = Annotated[
    Literal["debug", "info", "warning", "error"],
    typer.Option(
        help="How much is logged; info: starts, stops, new accounts; debug: each request."
    ),
]
Format = Annotated[Literal["text", "json"], typer.Option(help="Form of the log on standard error.")]


def serve(
    context: typer.Context,
    data: Data = Path("strongroom-data"),
    in_memory: InMemory = False,
    *,
    host: Annotated[str, typer.Option(help="Name or address to listen on.")] = "127.0.0.1",
    blob_port: BlobPort = 10000,
    queue_port: QueuePort = 10001,
    table_port: TablePort = 10002,
    file_port: FilePort = 10003,
    one_port: OnePort = None,
    port_base: PortBase = None,
    port: Port = None,
    smb: Smb = False,
    smb_port: SmbPort = 4450,
    smb_encryption: SmbEncryption = "required",
    cert: Annotated[Path | None, typer.Option(help=_CERT)] = None,
    key: Annotated[Path | None, typer.Option(help=_KEY)] = None,
    tls: Annotated[bool, typer.Option("--tls", help=_TLS)] = False,
    require_https: RequireHttps = False,
    accounts_file: Annotated[Path | None, typer.Option(help=_ACCOUNTS)] = None,
    account: Annotated[list[str] | None, typer.Option(help=_ACCOUNT)] = None,
    allow_development_key: AllowKey = False,
    test_clock: TestClock = False,
    host_suffix: Annotated[list[str] | None, typer.Option(help=_SUFFIX)] = None,
    copy_source_host: Annotated[list[str] | None, typer.Option(help=_SOURCE)] = None,
    metrics_anywhere: MetricsAnywhere = False,
    own_host: Annotated[list[str] | None, typer.Option(help=_OWN_HOST)] = None,
    oauth: Annotated[Literal["basic"] | None, typer.Option(help=_OAUTH)] = None,
    oauth_issuer: Annotated[str | None, typer.Option(help=_ISSUER)] = None,
    oauth_keys: Annotated[str | None, typer.Option(help=_KEYS)] = None,
    oauth_audience: Annotated[list[str] | None, typer.Option(help=_AUDIENCE)] = None,
    oauth_tenant: Annotated[str | None, typer.Option(help=_TENANT)] = None,
    roles_file: Annotated[Path | None, typer.Option(help=_ROLES)] = None,
    log_level: Level = "warning",
    log_format: Format = "text",
    rehydration_delay: Rehydration = "0s",
    rehydration_delay_high: RehydrationHigh = None,
) -> None:
    """See HELP."""
    from strongroom import config

    kept = _data_directory(context, data, in_memory)
    _refuse_without_smb(context, smb)
    given = (oauth, oauth_issuer, oauth_keys, oauth_audience or (), oauth_tenant)
    settings = config.Settings(
        data=kept,
        host=host,
        blob_port=blob_port,
        queue_port=queue_port,
        table_port=table_port,
        file_port=file_port,
        one_port=one_port,
        smb=config.SmbFlags(smb_port, smb_encryption) if smb else None,
        accounts=_or_fail(config.account_sources, account or (), accounts_file, kept, os.environ),
        tls=_tls(cert, key, tls, require_https),
        requires_https=require_https,
        test_clock=test_clock,
        allow_development_key=allow_development_key,
        host_suffixes=tuple(_suffixes(host_suffix or ())),
        copy_source_hosts=tuple(copy_source_host or ()),
        metrics_anywhere=metrics_anywhere,
        own_hosts=tuple(map(_own_host, own_host or ())),
        oauth=_or_fail(config.oauth_settings, *given),
        roles=config.roles_source(roles_file, kept),
        rehydration_s=_rehydration_s(rehydration_delay, rehydration_delay_high),
        log_level=log_level,
        log_format=log_format,
    )
    run(with_ports(context, settings, port_base))


def _refuse_without_smb(context: typer.Context, smb: bool) -> None:
    """End the command if a flag of SMB is given without --smb, because it would do nothing."""
    for name in () if smb else ("smb_port", "smb_encryption"):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            fail(Exit.USAGE, f"--{name.replace('_', '-')} does nothing without --smb; add --smb")


def _or_fail(read: Callable[..., T], *given: object) -> T:
    """Return the result of `read` for these flags; end the command if they cannot be used."""
    from strongroom.config import ConfigError

    try:
        return read(*given)
    except ConfigError as error:
        fail(Exit.SETTINGS, str(error))


def _data_directory(context: typer.Context, data: Path, in_memory: bool) -> Path | None:
    """Return where data is kept; None = nowhere. A flag takes precedence over the environment."""
    if not in_memory:
        return data
    source = context.get_parameter_source("data")
    if source is not None and source.name == "COMMANDLINE":
        fail(Exit.USAGE, "--in-memory keeps nothing; it does not go with --data")
    return None


def _rehydration_s(standard: str, high: str | None) -> tuple[float, float]:
    """Return the delays of both priorities, in seconds: Standard, High."""
    found = _delay_s("--rehydration-delay", standard)
    return found, found if high is None else _delay_s("--rehydration-delay-high", high)


def _delay_s(option: str, text: str) -> float:
    """Return the seconds of `15h`, `30m`, `10s` or `0s`."""
    unit = {"h": 3600, "m": 60, "s": 1}.get(text[-1:])
    number = text[:-1]
    if unit is None or not (number.isascii() and number.isdigit() and len(number) <= 6):
        fail(Exit.USAGE, f"{option} {text!r}: give a time such as 15h, 30m or 10s")
    return float(int(number) * unit)


def _tls(
    cert: Path | None, key: Path | None, self_made: bool, required: bool
) -> TlsFiles | SelfSigned | None:
    from strongroom.config import SelfSigned, TlsFiles

    if required and cert is None and key is None and not self_made:
        fail(Exit.USAGE, "--require-https needs a certificate: --cert and --key, or --tls")

    if (cert is None) != (key is None):
        fail(Exit.USAGE, "--cert and --key belong together")
    if cert is not None and key is not None:
        if self_made:
            fail(Exit.USAGE, "--tls makes a certificate; it does not go with --cert and --key")
        return TlsFiles(cert, key)
    return SelfSigned() if self_made else None


def _suffixes(given: list[str] | tuple[()]) -> list[str]:
    return [suffix.lower().strip(".") for suffix in given if suffix.strip(".")]


def _own_host(given: str) -> str:
    name = given.strip().lower().removesuffix(".")
    if not _HOST_NAME.fullmatch(name):
        fail(Exit.USAGE, f"--own-host takes a name like store.example.net, not {given!r}")
    return name


def run(settings: Settings) -> None:
    """Serve in this process until a signal or a failure ends it."""
    gc.disable()  # a pass while modules load frees nothing, since what they make stays
    from strongroom.app import CannotListen, DataUnusable
    from strongroom.cli.event_loop import run as run_to_end
    from strongroom.config import ConfigError
    from strongroom.servers.telemetry import set_up_logging

    set_up_logging(settings.log_level, settings.log_format)
    # Python's default would start a pass at every 700 new objects, most of which live briefly. The
    # objects of the program itself need no pass at all.
    gc.set_threshold(*GC_THRESHOLDS)
    gc.freeze()
    gc.enable()
    try:
        broken = run_to_end(_until_signal(settings))
    except ConfigError as error:
        fail(Exit.SETTINGS, str(error))
    except DataUnusable as error:
        fail(Exit.DATA, str(error))
    except CannotListen as error:
        fail(Exit.LISTEN, str(error))
    except MemoryError:
        _exit_at_once(
            "memory ran out, or the system starts no more threads. Every acknowledged change is "
            "kept; raise the limit (ulimit -v, ulimit -u, the container's), then start again."
        )
    except KeyboardInterrupt:
        # The second Ctrl-C. All acknowledged changes are durable nevertheless.
        raise typer.Exit(130) from None
    if broken is not None:
        fail(
            Exit.STORAGE,
            f"the disk failed, so the server stopped: {broken}. Everything that was answered is "
            "kept; look at the disk, then start again.",
        )


async def _until_signal(settings: Settings) -> EngineError | None:
    from strongroom.app import serve as serve_app
    from strongroom.cli.banner import banner
    from strongroom.cli.event_loop import on_signals
    from strongroom.clock import SystemClock

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def on_signal(name: str) -> None:
        if not stop.is_set():
            _log.info("%s: no new connections; requests in flight may finish", name)
        stop.set()
        # A second signal ends the process without waiting.
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        on_signals(loop, (number,), partial(on_signal, number.name))

    def started(app: App) -> None:
        typer.echo(banner(app))

    return await serve_app(settings, SystemClock(), stop, started, _exit_at_once)


def _exit_at_once(why: str) -> None:
    """End the process at once: an orderly end needs memory, and answered changes are durable."""
    os.write(sys.stderr.fileno(), f"strongroom: {why}\n".encode())
    os._exit(Exit.STORAGE.value)
