"""The program's settings: typed, frozen, read once by the command line.

Lives here: `Settings`, the sources of accounts, and the rules about combinations of settings. Must
not live here: opening anything (app.py), the text of flags (cli/). No module below app.py reads the
environment. Source of AZURITE_ACCOUNTS: Azurite's documentation, `NAME:KEY1:KEY2` with `;` between
accounts.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import msgspec

from strongroom.auth.accounts import (
    Account,
    AccountsError,
    development_account,
    parse_account,
    parse_accounts,
)
from strongroom.database import DatabaseSettings, StoreMode

DEFAULT_DATA: Final = Path("strongroom-data")
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORTS: Final = (10000, 10001, 10002, 10003)
DEFAULT_SMB_PORT: Final = 4450
DEFAULT_SCRUB_DAYS: Final = 30
DEFAULT_CONSOLE_PORT: Final = 10010
DEFAULT_IDLE_MINUTES: Final = 30
ACCOUNTS_FILE_NAME: Final = "accounts.json"
ROLES_FILE_NAME: Final = "roles.json"
ACCOUNTS_VARIABLES: Final = ("STRONGROOM_ACCOUNTS", "AZURITE_ACCOUNTS")
VARIABLE_PREFIX: Final = "STRONGROOM_"
_MANAGER_VARIABLES: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
SmbEncryption = Literal["required", "offered"]
ServiceName = Literal["blob", "queue", "table", "file"]
SERVICE_NAMES: Final[tuple[ServiceName, ...]] = ("blob", "queue", "table", "file")
AccessLogNames = Literal["plain", "hash", "off"]


class ConfigError(Exception):
    """Invalid settings; the text says which setting, why, and what to do."""


class TlsFiles(msgspec.Struct, frozen=True):
    """A certificate and its private key, both PEM."""

    certificate: Path
    key: Path


class PfxFile(msgspec.Struct, frozen=True):
    """A certificate and its private key in one PFX file; `password_file` None = it has none."""

    file: Path
    password_file: Path | None = None


class SelfSigned(msgspec.Struct, frozen=True):
    """A certificate that the server makes itself, for localhost."""


class AccountSources(msgspec.Struct, frozen=True):
    """The sources of accounts.

    `file` is checked for changes with every request. `must_exist` is set if the user named the
    file. With a store in a database, a file that nobody named is not read: see `accounts_in_store`.
    Without any account the development account is served.
    """

    fixed: tuple[Account, ...] = ()
    file: Path | None = None
    must_exist: bool = False


class OAuth(msgspec.Struct, frozen=True):
    """The issuer whose bearer tokens are accepted.

    Attributes:
        issuer: the claim `iss`; None = any (development mode only).
        keys: a JWK Set: a file, or an https URL; None = development mode, in which signatures are
            not checked.
        audiences: the accepted values of the claim `aud`; none = Azure Storage and the account's
            URL.
        tenant: the claim `tid`; None = any.
    """

    issuer: str | None = None
    keys: str | None = None
    audiences: tuple[str, ...] = ()
    tenant: str | None = None


class SmbFlags(msgspec.Struct, frozen=True):
    """The settings of the SMB server.

    Attributes:
        port: 0 = a free one.
        encryption: `offered` permits clients to sign without encrypting.
    """

    port: int = DEFAULT_SMB_PORT
    encryption: SmbEncryption = "required"


class ServiceHosts(msgspec.Struct, frozen=True):
    """The hosts of services that do not listen on the host of all others; None = that host."""

    blob: str | None = None
    queue: str | None = None
    table: str | None = None
    file: str | None = None


# No struct: its text must not show the secrets of stores.
@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """The settings of the console.

    Attributes:
        port: 0 = a free one.
        is_asked_for: whether the server fails to start if the port is taken; otherwise it says so
            and goes on without a console.
        url: the one origin of the page behind a proxy that ends TLS; None = that of each request.
        idle_minutes: without a key or a click for so long, the page signs out.
        operator: the account whose key sees the whole server; None = that of the only account.
        oidc_client: the client id with which people sign in at the issuer of bearer tokens; None =
            they do not.
        folder: of the built page; None = the package's own.
        coordination_stores: further stores of the toolkit, each NAME=URL, which may hold secrets.
        coordination_acts: whether operators may open gates and break locks there.
    """

    port: int = DEFAULT_CONSOLE_PORT
    is_asked_for: bool = True
    url: str | None = None
    idle_minutes: int = DEFAULT_IDLE_MINUTES
    operator: str | None = None
    oidc_client: str | None = None
    folder: Path | None = None
    coordination_stores: tuple[str, ...] = field(default=(), repr=False)
    coordination_acts: bool = False


class RolesSource(msgspec.Struct, frozen=True):
    """The source of role assignments.

    `file` is checked for changes with every request that needs roles. `must_exist` is set if the
    user named the file. With a store in a database, a file that nobody named is not read.
    """

    file: Path | None = None
    must_exist: bool = False


@dataclass(frozen=True, slots=True)
class SetupSource:
    """A setup file, which is applied at the start.

    Attributes:
        overwrites: whether access levels, policies, CORS and roles that differ are set.
        variables: the environment, in which keys may lie.
        only: whether the server ends when the setup is applied.
    """

    file: Path
    overwrites: bool = False
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    only: bool = False


class LogSettings(msgspec.Struct, frozen=True):
    """The program's own log, on standard error.

    Attributes:
        debug_file: a file for lines of every level; None = there is none.
    """

    level: LogLevel = "warning"
    format: LogFormat = "text"
    debug_file: Path | None = None


class ObservationSettings(msgspec.Struct, frozen=True):
    """What is recorded of each request.

    Attributes:
        access_log: the path of the access log, `-` = standard output; None = there is none.
        names: how the names of objects are shown, in the access log and in spans.
        traces: whether spans are sent as the OTEL_ variables say.
    """

    access_log: str | None = None
    names: AccessLogNames = "plain"
    traces: bool = False


class Settings(msgspec.Struct, frozen=True):
    """All settings of a server.

    Attributes:
        data: the data directory; None = in memory. With `store` it has a certificate only.
        one_port: the port of all services; None = no such port.
        smb: None = SMB is not served.
        requires_https: plain HTTP is refused.
        allow_reset: everything may be removed by one request.
        host_suffixes: domains below which a label is an account, besides blob.localhost etc.
        own_hosts: further host names of the server's own endpoints.
        oauth: None = bearer tokens are refused.
        rehydration_s: how long archived blobs take to become readable, with priority Standard and
            with High.
        setup: None = nothing is set up.
        ready_file: exists while the server is ready; None = there is no such file.
        services: those that get a port of their own.
        memory_max_bytes: bounds what a server without `data` keeps; None = no bound.
        scrub_days: everything in `data` is read once in so many days to find damage; 0 = it is not.
        allow_unsigned_tokens: other machines may use the development mode of bearer tokens.
        console: None = there is no console.
        store: the database that keeps everything but what `data` says; None = there is none.
    """

    data: Path | None = DEFAULT_DATA
    host: str = DEFAULT_HOST
    blob_port: int = DEFAULT_PORTS[0]
    queue_port: int = DEFAULT_PORTS[1]
    table_port: int = DEFAULT_PORTS[2]
    file_port: int = DEFAULT_PORTS[3]
    one_port: int | None = None
    smb: SmbFlags | None = None
    accounts: AccountSources = AccountSources()
    tls: TlsFiles | PfxFile | SelfSigned | None = None
    requires_https: bool = False
    test_clock: bool = False
    allow_reset: bool = False
    allow_development_key: bool = False
    host_suffixes: tuple[str, ...] = ()
    copy_source_hosts: tuple[str, ...] = ()
    metrics_anywhere: bool = False
    own_hosts: tuple[str, ...] = ()
    log: LogSettings = LogSettings()
    observation: ObservationSettings = ObservationSettings()
    drain_timeout_s: float = 20.0
    strict: bool = False
    oauth: OAuth | None = None
    roles: RolesSource = RolesSource()
    rehydration_s: tuple[float, float] = (0.0, 0.0)
    setup: SetupSource | None = None
    ready_file: Path | None = None
    hosts: ServiceHosts = ServiceHosts()
    services: tuple[ServiceName, ...] = SERVICE_NAMES
    memory_max_bytes: int | None = None
    scrub_days: int = DEFAULT_SCRUB_DAYS
    allow_unsigned_tokens: bool = False
    console: ConsoleSettings | None = None
    store: DatabaseSettings | None = None

    def host_of(self, name: str) -> str:
        """Return the host of a listener: a service's own, else that of all."""
        own: str | None = getattr(self.hosts, name) if name in SERVICE_NAMES else None
        return self.host if own is None else own

    def service_ports(self) -> dict[str, int]:
        """Return the port of each service that gets one of its own, by the service's name."""
        return {name: getattr(self, f"{name}_port") for name in self.services}

    def listening_hosts(self) -> tuple[str, ...]:
        """Return every host that a listener is opened on, without repetition."""
        shared = any(one is not None for one in (self.one_port, self.smb, self.console))
        hosts = [self.host_of(name) for name in self.services]
        return tuple(dict.fromkeys([*hosts, self.host] if shared else hosts))

    def exposed_host(self) -> str | None:
        """Return a host on which other machines reach the server; None if there is none."""
        return next((host for host in self.listening_hosts() if not is_loopback(host)), None)

    def may_be_reset(self) -> bool:
        """Whether a request may remove everything: if the settings allow it, or in memory with a
        test clock. There, a key that everybody knows must not be served to other machines."""
        is_for_tests = kept_in(self) is None and self.test_clock
        is_known = self.allow_development_key and self.exposed_host() is not None
        return self.allow_reset or (is_for_tests and not is_known)


def kept_in(settings: Settings) -> str | None:
    """Return where the store is kept, as people may see it; None = in memory."""
    if settings.store is not None:
        return settings.store.shown
    return None if settings.data is None else str(settings.data.resolve())


def accounts_in_store(settings: Settings) -> bool:
    """Whether accounts lie in the store: with a database, unless the user named an accounts
    file."""
    return settings.store is not None and not settings.accounts.must_exist


def roles_in_store(settings: Settings) -> bool:
    """Whether role assignments lie in the store: with a database, unless the user named a roles
    file. Accounts may then still be those of a file, and the other way round."""
    return settings.store is not None and not settings.roles.must_exist


def without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which `strongroom serve` is as if there were no variables for it:
    no values of flags, no accounts, no service manager."""
    own = (*ACCOUNTS_VARIABLES, *_MANAGER_VARIABLES)
    return {
        name: text
        for name, text in environment.items()
        if name not in own and not name.startswith(VARIABLE_PREFIX)
    }


def account_sources(
    given: Sequence[str],
    file: Path | None,
    data: Path | None,
    environment: Mapping[str, str],
) -> AccountSources:
    """Return the sources of accounts.

    Arguments:
        given: texts `NAME:KEY[:KEY2]` from the command line.
        file: the accounts file that the user named; None = the data directory's own.
        data: the data directory; None = in memory.
        environment: STRONGROOM_ACCOUNTS is used, or AZURITE_ACCOUNTS if that is not set.

    Raises: ConfigError.
    """
    accounts: dict[str, Account] = {}
    for account in (*_parsed(given), *_of_environment(environment)):
        if account.name in accounts:
            raise ConfigError(f"account {account.name!r} is given twice")
        accounts[account.name] = account
    path = file
    if path is None and data is not None:
        path = data / ACCOUNTS_FILE_NAME
    return AccountSources(tuple(accounts.values()), path, file is not None)


def roles_source(file: Path | None, data: Path | None) -> RolesSource:
    """The file that the user named, else the data directory's."""
    path = data / ROLES_FILE_NAME if file is None and data is not None else file
    return RolesSource(path, file is not None)


def oauth_settings(
    mode: Literal["basic"] | None,
    issuer: str | None,
    keys: str | None,
    audiences: Sequence[str] = (),
    tenant: str | None = None,
) -> OAuth | None:
    """Return the issuer whose bearer tokens are accepted; None if no tokens are accepted.

    Arguments:
        mode: `basic` = development mode, in which signatures are not checked.
        issuer, keys, audiences, tenant: as the attributes of OAuth.

    Raises: ConfigError for flags that cannot be combined, and texts that no token can contain.
    """
    if mode is None and issuer is keys is tenant is None and not audiences:
        return None
    if mode == "basic" and keys is not None:
        raise ConfigError("--oauth basic checks no signatures; it does not go with --oauth-keys")
    if mode is None and (issuer is None or keys is None):
        raise ConfigError(
            "bearer tokens need --oauth-issuer and --oauth-keys; for development on this machine, "
            "--oauth basic accepts tokens without checking their signatures"
        )
    for text in (issuer, tenant, *audiences):
        if text is not None and not (text.isascii() and text.isprintable() and " " not in text):
            raise ConfigError(f"{text!r} cannot be the claim of a token: it has other characters")
        if text == "":
            raise ConfigError("the issuer, tenant and audience of bearer tokens cannot be empty")
    if keys is not None and "://" in keys and not keys.lower().startswith("https://"):
        raise ConfigError(f"--oauth-keys {keys!r} must be a file or an https URL")
    return OAuth(issuer, keys, tuple(audiences), tenant)


def _parsed(given: Iterable[str]) -> list[Account]:
    try:
        return [parse_account(text) for text in given]
    except AccountsError as error:
        raise ConfigError(f"--account: {error}") from None


def _of_environment(environment: Mapping[str, str]) -> tuple[Account, ...]:
    for name in ACCOUNTS_VARIABLES:
        text = environment.get(name, "")
        if text.strip():
            try:
                return parse_accounts(text)
            except AccountsError as error:
                raise ConfigError(f"{name}: {error}") from None
    return ()


def has_development_key(account: Account) -> bool:
    """Whether one of an account's keys is the published development key, whatever its name."""
    (known,) = development_account().keys
    return any(hmac.compare_digest(key, known) for key in account.keys)


def check_exposure(settings: Settings, accounts: Iterable[Account]) -> None:
    """Refuse to serve the well-known key to other machines.

    Raises: ConfigError, which names the flag.
    """
    exposed = settings.exposed_host()
    if exposed is None:
        return
    for account in accounts:
        if not has_development_key(account):
            continue
        if settings.allow_reset:
            raise ConfigError(
                f"{exposed!r} can be reached from other machines, and the key of account "
                f"{account.name!r} is the development key, which everybody knows. So anybody could "
                "sign a reset. Give accounts of your own, or leave --allow-reset out."
            )
        if not settings.allow_development_key:
            database = settings.store if accounts_in_store(settings) else None
            add = "strongroom account add NAME" + (f" {database.flags}" if database else "")
            raise ConfigError(
                f"{exposed!r} can be reached from other machines, and the key of "
                f"account {account.name!r} is the development key, which everybody knows. Add an "
                f"account of your own ({add}), or say --allow-development-key."
            )


def check_oauth(settings: Settings) -> None:
    """Refuse the development mode of bearer tokens if other machines can reach the server.

    `--allow-development-key` does not change that. It exposes one account that protects nothing,
    but tokens that anybody can write would expose every account. No flag of `serve` sets
    `allow_unsigned_tokens`.

    Raises: ConfigError.
    """
    oauth, exposed = settings.oauth, settings.exposed_host()
    if oauth is None or oauth.keys is not None or settings.allow_unsigned_tokens:
        return
    if exposed is not None:
        raise ConfigError(
            f"{exposed!r} can be reached from other machines, and --oauth basic accepts "
            "tokens that anybody can write. Say whose tokens are accepted by --oauth-issuer and "
            "--oauth-keys."
        )


def check_gateways(settings: Settings) -> None:
    """Refuse a certificate that each gateway makes for itself, where several serve at a time.
    A client that trusts one of them would refuse the others. Raises: ConfigError."""
    store = settings.store
    serve_together = store is not None and store.mode is StoreMode.ACTIVE_ACTIVE
    if serve_together and isinstance(settings.tls, SelfSigned):
        raise ConfigError(
            "--tls makes a certificate of this server's own, and other gateways of --store-mode "
            "active-active have others. Give all of them one by --cert and --key."
        )


def check_logs(settings: Settings) -> None:
    """Refuse a log inside the data directory, whose files it could damage. Raises: ConfigError."""
    data = settings.data
    access_log = settings.observation.access_log
    for log in (None if access_log == "-" else access_log, settings.log.debug_file):
        if data is None or log is None:
            continue
        if Path(os.path.realpath(log)).is_relative_to(os.path.realpath(data)):
            raise ConfigError(
                f"the log {log} would lie in the data directory {data}, which has no other files "
                "than its own. Name a file outside of it."
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a listener on `host`.

    A name other than `localhost` is not resolved, and counts as reachable.
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
