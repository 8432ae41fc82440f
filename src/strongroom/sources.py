"""What the settings name, opened: accounts, roles, the certificate, hosts that copies read from.

Lives here: the way from a setting to the object that is served. Must not live here: what settings
mean (config.py), how the objects are used (app.py).
"""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from strongroom.auth.accounts import Account, AccountsError, development_account
from strongroom.auth.bearer import Issuer
from strongroom.auth.request import Service
from strongroom.clock import Clock
from strongroom.config import (
    ACCOUNTS_FILE_NAME,
    ROLES_FILE_NAME,
    ConfigError,
    PfxFile,
    SelfSigned,
    Settings,
    TlsFiles,
    accounts_in_store,
    check_exposure,
    kept_in,
    roles_in_store,
)
from strongroom.database import StoreMode
from strongroom.servers import service_listeners, smb
from strongroom.servers.certificates.served import (
    CertificateFiles,
    ServedCertificate,
    pem_files,
    pfx_file,
)
from strongroom.servers.certificates.tls import TlsUnusable
from strongroom.servers.console.access.answers import IdentityFiles
from strongroom.servers.console.own_names import OwnNames
from strongroom.servers.console.serving import NAME as CONSOLE
from strongroom.servers.console.serving import ConsoleOptions, ServerFacts
from strongroom.servers.copies.addresses import SourceHosts
from strongroom.servers.copies.client import CopyClient
from strongroom.servers.copy_locator import CopyLocator
from strongroom.servers.identities.accounts_file import ServedAccounts
from strongroom.servers.identities.identities import ServedIdentities
from strongroom.servers.identities.roles_file import ServedRoles
from strongroom.servers.identities.stored_rows import StoredIdentities
from strongroom.servers.identities.token_keys import KeyFile, KeyUrl, TokenKeys, fetch
from strongroom.servers.wanted_ports import GATEWAYS, WantedPort, wanted_ports, warn_of_taken
from strongroom.services.copy_openers import OPENERS
from strongroom.services.core.copies.sources import CopyHold, CopySources
from strongroom.services.core.runner import Services
from strongroom.values import JobFacts, StoreFacts

if TYPE_CHECKING:
    from strongroom.servers.console.oidc import SignIn
    from strongroom.servers.forwarding.forwarding import Forwarding

_log = logging.getLogger(__name__)
Close = Callable[[], Awaitable[object]]
JobFactsOf = Callable[[], JobFacts]
_EVERYWHERE: Final = ("", "0.0.0.0", "::")


def copy_sources(settings: Settings, locator: CopyLocator, hold: CopyHold | None) -> CopySources:
    """Of this server, and of permitted other hosts. `hold`: see CopySources. Raises:
    ConfigError."""
    try:
        hosts = SourceHosts.parse(settings.copy_source_hosts)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return CopySources(OPENERS, locate=locator.locate, remote=CopyClient(hosts), hold=hold)


def forwarding_of(settings: Settings, services: Services) -> Forwarding | None:
    """None where no other gateway serves the store beside this one."""
    store = settings.store
    if store is None or store.mode is not StoreMode.ACTIVE_ACTIVE:
        return None
    from strongroom.servers.forwarding.forwarding import Forwarding

    return Forwarding(services, store.gateway_address, settings.listening_hosts())


async def warn_of_taken_ports(settings: Settings) -> None:
    """Log a warning for each port of a gateway that it could not open now."""
    ports = wanted_ports(settings.service_ports(), settings.one_port)
    if settings.smb is not None:
        ports[smb.NAME] = settings.smb.port
    if settings.console is not None and settings.console.is_asked_for:
        ports[CONSOLE] = settings.console.port
    wanted = [WantedPort(name, settings.host_of(name), port) for name, port in ports.items()]
    address = None if settings.store is None else settings.store.gateway_address
    if address is not None:
        wanted.append(WantedPort(GATEWAYS, *address))
    await warn_of_taken(one for one in wanted if one.port)


def served_roles(
    settings: Settings, open_without: bool, stored: StoredIdentities | None
) -> ServedRoles:
    """`open_without`: see ServedRoles. Raises: OSError, RolesError."""
    source = settings.roles
    if stored is not None and roles_in_store(settings):
        return ServedRoles(None, open_without, rows=stored.roles)
    if source.must_exist and source.file is not None and not source.file.is_file():
        raise FileNotFoundError(f"there is no roles file {source.file}")
    return ServedRoles(source.file, open_without)


def served_identities(
    settings: Settings, stored: StoredIdentities | None, closing: Callable[[Close], None]
) -> dict[Service, ServedIdentities]:
    """One judge for each service; all use the same keys and roles. None if no tokens are accepted.

    `stored` are those of the store, if it is a database. `closing` is given what to call at the
    end. Raises: ConfigError.
    """
    oauth = settings.oauth
    if oauth is None:
        return {}
    try:
        roles = served_roles(settings, oauth.keys is None, stored)
        keys = None if oauth.keys is None else _token_keys(oauth.keys, closing)
    except (OSError, ValueError) as error:
        raise ConfigError(f"bearer tokens: {error}") from None
    return {
        service: ServedIdentities(
            Issuer(
                name=oauth.issuer,
                audiences=oauth.audiences,
                tenant=oauth.tenant,
                signed=keys is not None,
                suffixes=service_listeners.suffixes(service, settings.host_suffixes),
            ),
            keys,
            roles,
        )
        for service in service_listeners.ENDPOINTS
    }


def _token_keys(keys: str, closing: Callable[[Close], None]) -> TokenKeys:
    if "://" not in keys:
        return KeyFile(Path(keys))
    # The operator named this one host, so it may be in the server's own network.
    client = CopyClient(SourceHosts.parse((urlsplit(keys).netloc.lower(),)))
    source = KeyUrl(lambda: fetch(client, keys), asyncio.get_running_loop().time)
    closing(source.close)
    return source


def served_accounts(settings: Settings, stored: StoredIdentities | None = None) -> ServedAccounts:
    """Return the accounts, of which none may expose the well-known key.

    `stored` are those of the store, if it is a database. Raises: ConfigError.
    """
    sources = settings.accounts
    rows = stored.accounts if stored is not None and accounts_in_store(settings) else None

    def admit(accounts: tuple[Account, ...]) -> None:
        try:
            check_exposure(settings, accounts)
        except ConfigError as error:
            raise AccountsError(str(error)) from None

    if sources.must_exist and sources.file is not None and not sources.file.is_file():
        raise ConfigError(f"there is no accounts file {sources.file}")
    try:
        call_soon = asyncio.get_running_loop().call_soon
        return ServedAccounts(
            sources.fixed,
            sources.file if rows is None else None,
            development_account(),
            admit,
            call_soon,
            rows=rows,
        )
    except (AccountsError, OSError) as error:
        raise ConfigError(str(error)) from None


def own_url(settings: Settings, port: int) -> str:
    """Return the server's URL as a client on this machine may use it."""
    host = own_host(settings)
    return f"{own_scheme(settings)}://{f'[{host}]' if ':' in host else host}:{port}"


def console_url(settings: Settings, ports: Mapping[str, int]) -> str:
    """Return the console's origin as clients on this machine may use it; "" = there is none."""
    port = ports.get(CONSOLE)
    if port is None or settings.console is None:
        return ""
    return settings.console.url or own_url(settings, port)


def own_scheme(settings: Settings) -> str:
    return "http" if settings.tls is None else "https"


def own_host(settings: Settings) -> str:
    """Return the host under which clients on this machine may reach the server, without
    brackets."""
    return "127.0.0.1" if settings.host in _EVERYWHERE else settings.host.strip("[]")


def console_facts(
    settings: Settings,
    ports: Mapping[str, int],
    accounts: ServedAccounts,
    store: Callable[[], StoreFacts] | None,
    jobs: JobFactsOf,
) -> ServerFacts:
    host = own_host(settings)
    return ServerFacts(
        host=f"[{host}]" if ":" in host else host,
        scheme=own_scheme(settings),
        ports=ports,
        is_local=settings.exposed_host() is None,
        has_test_clock=settings.test_clock,
        data=kept_in(settings),
        accounts=accounts.all,
        store=store,
        jobs=jobs,
        files=_identity_files(settings, accounts),
    )


def _identity_files(settings: Settings, accounts: ServedAccounts) -> IdentityFiles:
    return IdentityFiles(
        accounts.source_of,
        accounts.file is not None or accounts.rows is not None,
        _flags_of(settings, accounts_in_store(settings), "--accounts-file", accounts.file),
        _flags_of(settings, roles_in_store(settings), "--roles-file", settings.roles.file),
    )


def _flags_of(settings: Settings, in_store: bool, flag: str, file: Path | None) -> str:
    """Return what makes a command of this machine change the file, or the store; "" without
    either."""
    if in_store and settings.store is not None:
        return settings.store.flags
    if file is None:
        return ""
    usual = (ACCOUNTS_FILE_NAME, ROLES_FILE_NAME)
    if settings.data is not None and file in [settings.data / name for name in usual]:
        return shlex.join(("--data", str(settings.data.resolve())))
    return shlex.join((flag, str(file.resolve())))


async def console_options(settings: Settings, tls: ServedCertificate | None) -> ConsoleOptions:
    """There must be a console. Raises: ConfigError."""
    flags = settings.console
    assert flags is not None
    hosts = (*settings.listening_hosts(), *settings.own_hosts)
    names = OwnNames(frozenset(name.lower().strip("[]") for name in hosts), tls)
    sign_in = await _sign_in(settings)
    return ConsoleOptions(
        flags.url, flags.idle_minutes, flags.operator, names.has, sign_in, flags.folder
    )


async def _sign_in(settings: Settings) -> SignIn | None:
    """None if it is not wanted, or the issuer cannot be asked. Raises: ConfigError."""
    client = None if settings.console is None else settings.console.oidc_client
    issuer = None if settings.oauth is None else settings.oauth.issuer
    if client is None or issuer is None:
        return None
    if settings.tls is None:
        raise ConfigError(
            "--console-oidc-client needs TLS, as bearer tokens do: add --tls, or --cert and --key"
        )
    from strongroom.servers.console.oidc import IssuerUnusable, discover  # few servers need it

    try:
        return await discover(issuer, client)
    except IssuerUnusable as error:
        _log.warning("nobody can sign in at the issuer: %s", error)
        return None


def served_certificate(
    settings: Settings, own_directory: Callable[[], Path], clock: Clock
) -> ServedCertificate | None:
    """None = TLS is not served. Raises: ConfigError.

    `own_directory` returns where the server keeps a certificate that it makes.
    """
    if settings.tls is None:
        return None
    try:
        return ServedCertificate(_certificate_files(settings.tls, own_directory, clock))
    except (TlsUnusable, OSError) as error:
        raise ConfigError(f"TLS cannot be used: {error}") from None


def _certificate_files(
    tls: TlsFiles | PfxFile | SelfSigned, own_directory: Callable[[], Path], clock: Clock
) -> CertificateFiles:
    if isinstance(tls, TlsFiles):
        return pem_files(tls.certificate, tls.key)
    if isinstance(tls, PfxFile):
        return pfx_file(tls.file, tls.password_file, clock.random_bytes)
    from strongroom.servers.certificates.self_signed import self_signed_certificate

    make = partial(self_signed_certificate, own_directory(), clock)
    return pem_files(*make(), make)
