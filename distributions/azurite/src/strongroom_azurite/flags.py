"""Every flag of the commands, declared once: its form, what Azurite does, what this program does.

Lives here: the table. The parser (command_line.py), `--help`, the remarks on standard error and the
page docs/azurite-command.md read it. Must not live here: the effect of a flag (settings.py).
Source: Azurite's README, "Command Line Options Differences between Azurite V2" and "Supported
Command Line Options", and Azurite 3.35 itself, started with each flag.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from strongroom_azurite.commands import COMMANDS, DEFAULT_HOST, DEFAULT_PORTS, Command, Service


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag.

    Attributes:
        name: as it is typed after two hyphens.
        value: what stands for its value in `--help`; "" = a switch without a value.
        help: its line in `--help`.
        peer: what Azurite does with it.
        ours: what this program does with it.
        remark: what is said on standard error where the flag is given; "" = nothing, since the flag
            does what it says.
        short: its letter after one hyphen.
        service: the service that it belongs to; None = all.
        is_own: whether Azurite does not have it.
    """

    name: str
    value: str
    help: str
    peer: str
    ours: str
    remark: str = ""
    short: str = ""
    service: Service | None = None
    is_own: bool = False

    def belongs_to(self, command: Command) -> bool:
        """Whether the command has this flag. `azurite` has all of them."""
        return self.service is None or not command.serves_one or self.service in command.services


_NO_EFFECT: Final = "accepted, without effect"


def _of_service(service: Service) -> tuple[Flag, ...]:
    """Return the flags that Azurite has for each service."""
    title, port = service.title(), DEFAULT_PORTS[service]
    return (
        Flag(
            f"{service}Host",
            "HOST",
            f"Address of the {title} service. Default: {DEFAULT_HOST}.",
            f"listens there; the default is {DEFAULT_HOST}",
            "the same",
            service=service,
        ),
        Flag(
            f"{service}Port",
            "PORT",
            f"Port of the {title} service; 0 takes a free one. Default: {port}.",
            f"listens there; the default is {port}, also for a value that is no number",
            "the same; a value that is no port is refused",
            service=service,
        ),
        Flag(
            f"{service}KeepAliveTimeout",
            "SECONDS",
            f"{_NO_EFFECT.capitalize()}: how long an idle connection to {title} stays open.",
            "closes an idle connection after 5 s, or after the time given",
            f"{_NO_EFFECT}: an idle connection is closed after 120 s",
            f"has no effect: an idle connection to {title} is closed after 120 s",
            service=service,
        ),
    )


_FILES: Final = (
    Flag(
        "fileHost",
        "HOST",
        f"Serve Files too, at this address. Default with --filePort: {DEFAULT_HOST}.",
        "unknown",
        "opens the File service there",
        service="file",
        is_own=True,
    ),
    Flag(
        "filePort",
        "PORT",
        f"Serve Files too, at this port. Default with --fileHost: {DEFAULT_PORTS['file']}.",
        "unknown",
        "opens the File service there",
        service="file",
        is_own=True,
    ),
)

_DATA: Final = (
    Flag(
        "location",
        "DIR",
        "Where data is kept, in strongroom-data below it. Default: this folder.",
        "keeps its files directly in this folder; the default is the current one",
        "keeps its data in `strongroom-data` below this folder; with files of Azurite beside it, "
        "and nothing imported yet, it does not start (exit code 3)",
        short="l",
    ),
    Flag(
        "import",
        "",
        "Import files of Azurite in --location, beside them, then serve.",
        "unknown",
        "imports files of Azurite into `strongroom-data`, leaves them as they are, then serves",
        is_own=True,
    ),
    Flag(
        "inMemoryPersistence",
        "",
        "Keep everything in memory: nothing outlives the process.",
        "keeps nothing on disk; refused together with `--location`",
        "the same",
    ),
    Flag(
        "extentMemoryLimit",
        "MB",
        "The most megabytes in memory. Default: half of the machine's memory.",
        "bounds the bodies of blobs and messages; refused unless in memory; `azurite-table` does "
        "not have it",
        "bounds bodies, names, metadata and entities together; refused unless in memory",
    ),
)

_TLS: Final = (
    Flag(
        "cert",
        "FILE",
        "Certificate: PEM with --key, or PFX with --pwd.",
        "serves HTTPS, with `--key` or `--pwd`; alone it serves plain HTTP",
        "serves HTTPS, with `--key` or `--pwd`; alone it is refused",
    ),
    Flag(
        "key",
        "FILE",
        "The certificate's private key (PEM).",
        "the private key of a PEM certificate",
        "the same",
    ),
    Flag(
        "pwd",
        "PASSWORD",
        "The password of a PFX file. Every user of this machine sees it in ps.",
        "the certificate is PFX, with this password; `--key` takes precedence",
        "the same",
    ),
    Flag(
        "oauth",
        "LEVEL",
        "basic: accept bearer tokens without checking their signatures.",
        "`basic` accepts bearer tokens over HTTPS without checking their signatures; another value "
        "has no effect",
        "`basic` does the same, with a warning if other machines can reach it; another value is "
        "refused",
    ),
)

_OUTPUT: Final = (
    Flag(
        "silent",
        "",
        "Print no remarks.",
        "prints no line for each request",
        "prints no remarks but warnings of risk; requests are never printed",
        short="s",
    ),
    Flag(
        "debug",
        "FILE",
        "Write log lines of every level to this file.",
        "writes a debug log to this file",
        "the same; only its owner can read the file",
        short="d",
    ),
    Flag(
        "version",
        "",
        "Show the version.",
        "prints its version, and ends",
        "prints the version of strongroom-azurite, and ends",
        short="v",
    ),
    Flag("help", "", "Show this text.", "prints its flags, and ends", "the same", short="h"),
)

_WITHOUT_EFFECT: Final = (
    Flag(
        "loose",
        "",
        f"{_NO_EFFECT.capitalize()}: what is not served is refused.",
        "ignores headers and parameters that it does not support",
        f"{_NO_EFFECT}: a request for what is not served is refused, so that nothing is lost",
        "has no effect: a request for what is not served is refused, so that nothing is lost",
        short="L",
    ),
    Flag(
        "skipApiVersionCheck",
        "",
        f"{_NO_EFFECT.capitalize()}: every version of the protocol is accepted.",
        "accepts versions of the protocol that it does not know",
        f"{_NO_EFFECT}: every version since 2009-09-19 is accepted without it",
        "has no effect: every version since 2009-09-19 is accepted without it",
    ),
    Flag(
        "disableProductStyleUrl",
        "",
        f"{_NO_EFFECT.capitalize()}: names below blob.localhost etc. are accounts.",
        "takes the account from the path, whatever the host name",
        f"{_NO_EFFECT}: the account is taken from the path, except for host names below "
        "`blob.localhost`, `queue.localhost` and `table.localhost`",
        "has no effect: only host names below blob.localhost and its like name an account",
    ),
    Flag(
        "disableTelemetry",
        "",
        f"{_NO_EFFECT.capitalize()}: nothing is ever sent to anybody.",
        "sends no telemetry to Microsoft",
        f"{_NO_EFFECT}: nothing is ever sent to anybody",
        "has no effect: this program sends nothing to anybody",
    ),
)

FLAGS: Final[tuple[Flag, ...]] = (
    *_of_service("blob"),
    *_of_service("queue"),
    *_of_service("table"),
    *_FILES,
    *_DATA,
    *_TLS,
    *_OUTPUT,
    *_WITHOUT_EFFECT,
)


def flags_of(command: Command) -> tuple[Flag, ...]:
    """Return the flags of a command, in the order of `--help`."""
    return tuple(flag for flag in FLAGS if flag.belongs_to(command))


def commands_of(flag: Flag) -> tuple[Command, ...]:
    """Return the commands that have a flag."""
    return tuple(command for command in COMMANDS if flag.belongs_to(command))
