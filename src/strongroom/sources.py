"""What the settings name, opened: accounts, roles, the certificate, hosts that copies read from.

Lives here: the way from a setting to the object that is served. Must not live here: what settings
mean (config.py), how the objects are used (app.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from strongroom.auth.accounts import Account, AccountsError, development_account
from strongroom.clock import Clock
from strongroom.config import (
    ConfigError,
    PfxFile,
    SelfSigned,
    Settings,
    TlsFiles,
    check_exposure,
)
from strongroom.servers.certificates.served import (
    CertificateFiles,
    ServedCertificate,
    pem_files,
    pfx_file,
)
from strongroom.servers.certificates.tls import TlsUnusable
from strongroom.servers.copies.addresses import SourceHosts
from strongroom.servers.identities.accounts_file import ServedAccounts
from strongroom.servers.identities.roles_file import ServedRoles


def source_hosts(settings: Settings) -> SourceHosts:
    """Return the hosts that copies may read from. Raises: ConfigError."""
    try:
        return SourceHosts.parse(settings.copy_source_hosts)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def served_roles(settings: Settings, open_without: bool) -> ServedRoles:
    """Return the role assignments.

    Arguments:
        open_without: see ServedRoles.

    Raises: OSError, RolesError.
    """
    source = settings.roles
    if source.must_exist and source.file is not None and not source.file.is_file():
        raise FileNotFoundError(f"there is no roles file {source.file}")
    return ServedRoles(source.file, open_without)


def served_accounts(settings: Settings) -> ServedAccounts:
    """Return the accounts, of which none may expose the well-known key. Raises: ConfigError."""
    sources = settings.accounts

    def admit(accounts: tuple[Account, ...]) -> None:
        try:
            check_exposure(settings, accounts)
        except ConfigError as error:
            raise AccountsError(str(error)) from None

    if sources.must_exist and sources.file is not None and not sources.file.is_file():
        raise ConfigError(f"there is no accounts file {sources.file}")
    try:
        call_soon = asyncio.get_running_loop().call_soon
        return ServedAccounts(sources.fixed, sources.file, development_account(), admit, call_soon)
    except (AccountsError, OSError) as error:
        raise ConfigError(str(error)) from None


def served_certificate(
    settings: Settings, own_directory: Callable[[], Path], clock: Clock
) -> ServedCertificate | None:
    """Return the certificate in use; None = TLS is not served. Raises: ConfigError.

    Arguments:
        own_directory: returns where the server keeps a certificate that it makes.
    """
    if settings.tls is None:
        return None
    try:
        return ServedCertificate(_certificate_files(settings.tls, own_directory, clock))
    except (TlsUnusable, OSError) as error:
        raise ConfigError(f"TLS cannot be used: {error}") from None


def _certificate_files(
    wanted: TlsFiles | PfxFile | SelfSigned, own_directory: Callable[[], Path], clock: Clock
) -> CertificateFiles:
    if isinstance(wanted, TlsFiles):
        return pem_files(wanted.certificate, wanted.key)
    if isinstance(wanted, PfxFile):
        return pfx_file(wanted.file, wanted.password_file, clock.random_bytes)
    from strongroom.servers.certificates.self_signed import self_signed_certificate

    make = partial(self_signed_certificate, own_directory(), clock)
    return pem_files(*make(), make)
