"""The text that `strongroom serve` prints when it is ready: the user's next steps.

Lives here: text. Must not live here: keys other than the development key, which is public. The
password of an account is the text of its key. Sources of the commands that mount a share:
mount.cifs(8), mount_smbfs(8), Microsoft's "net use" and New-SmbMapping, the documentation of
smbprotocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import __version__
from strongroom.app import App
from strongroom.auth.accounts import (
    DEVELOPMENT_ACCOUNT_KEY,
    Account,
    development_account,
)
from strongroom.auth.request import Service
from strongroom.config import DEFAULT_PORTS, OAuth, Settings, is_loopback, kept_in
from strongroom.servers import one_port, smb
from strongroom.servers.certificates.tls import TlsUnusable
from strongroom.servers.own_endpoints import PREFIX
from strongroom.sources import console_url, own_host, own_scheme, own_url

if TYPE_CHECKING:
    from strongroom.servers.certificates.names import CertificateNames

_ACCOUNTS_SHOWN = 5
_SERVED = tuple(Service)
_SHARE = "SHARE"

Urls = dict[Service, list[str]]


def account_urls(app: App, name: str, certificate: CertificateNames | None) -> Urls:
    """Return the URLs of an account's services: in path style, and in host style by host suffix.

    Arguments:
        certificate: the names that it is valid for; None = all names. The path-style URL is left
            out if the certificate is valid for a host-style URL, but not for the path-style one.
    """
    return {
        service: _service_urls(app, name, certificate, service, app.ports[service.value])
        for service in _SERVED
    }


def one_port_urls(app: App, name: str, certificate: CertificateNames | None) -> Urls | None:
    """Return the URLs of `account_urls` on the port of all services; None without that port."""
    port = app.ports.get(one_port.NAME)
    if port is None:
        return None
    return {
        service: _service_urls(app, name, certificate, service, port, f"/{service.value}")
        for service in _SERVED
    }


def _service_urls(
    app: App,
    name: str,
    certificate: CertificateNames | None,
    service: Service,
    port: int,
    mount: str = "",
) -> list[str]:
    """Return the URLs of one service.

    If the host name names the service, the path needs no prefix for it.
    """
    urls = []
    for suffix in _suffixes(app.settings, service):
        host = f"{name}.{suffix}"
        if certificate is None or certificate.cover(host):
            path = "" if one_port.is_for(suffix, service) else mount
            urls.append(_host_url(app.settings, host, port) + path)
    if not urls or certificate is None or certificate.cover(own_host(app.settings)):
        urls.insert(0, f"{own_url(app.settings, port)}{mount}/{name}")
    return urls


def _suffixes(settings: Settings, service: Service) -> list[str]:
    """Return the host suffixes of a service: `queue.example.org` is for queues only."""
    return [
        suffix
        for suffix in dict.fromkeys(settings.host_suffixes)
        if one_port.is_for(suffix, service)
        or not any(one_port.is_for(suffix, other) for other in Service)
    ]


def _host_url(settings: Settings, host: str, port: int) -> str:
    usual = 80 if settings.tls is None else 443
    return f"{own_scheme(settings)}://{host}" + ("" if port == usual else f":{port}")


def _certificate_names(app: App) -> CertificateNames | None:
    """Return the names that the certificate is valid for; None without TLS or host suffixes."""
    if app.tls is None or not app.settings.host_suffixes:
        return None
    from strongroom.servers.certificates.names import read_names

    try:
        return read_names(app.tls.files.read_certificates())
    except (TlsUnusable, OSError):
        return None  # the files have changed meanwhile


def connection_string(urls: Urls, name: str, key: str) -> str:
    """For Azure SDKs, with the first URL of each service."""
    scheme = urls[Service.BLOB][0].partition(":")[0]
    endpoints = "".join(
        f"{service.value.title()}Endpoint={own[0]};" for service, own in urls.items()
    )
    return f"DefaultEndpointsProtocol={scheme};AccountName={name};AccountKey={key};{endpoints}"


def banner(app: App) -> str:
    """Return the lines, without a last line break."""
    settings = app.settings
    url = own_url(settings, app.ports[Service.BLOB.value])
    rows: list[tuple[str, str]] = []
    accounts = app.accounts.all()
    certificate = _certificate_names(app)
    for account in accounts[:_ACCOUNTS_SHOWN]:
        urls = account_urls(app, account.name, certificate)
        rows += _account_rows(app, account, urls)
        routed = one_port_urls(app, account.name, certificate)
        if routed is not None:
            rows += _one_port_rows(account, routed)
    if len(accounts) > _ACCOUNTS_SHOWN:
        rows.append(("", f"and {len(accounts) - _ACCOUNTS_SHOWN} more accounts"))
    if smb.NAME in app.ports:
        rows += mount_rows(own_host(settings), app.ports[smb.NAME], accounts[0].name)
    rows.append(("data", kept_in(settings) or "in memory"))
    rows.append(("promise", _promise(app)))
    if app.certificate is not None:
        rows.append(("certificate", f"{app.certificate} (clients must trust this file)"))
    elif certificate is not None:
        valid = (*certificate.dns, *certificate.addresses)
        rows.append(("certificate", f"valid for {', '.join(valid) or 'no name'}"))
    if not is_loopback(settings.host):
        rows.append(("listens on", f"{settings.host or 'every address'}, for other machines too"))
    if settings.oauth is not None:
        rows.append(("bearer tokens", _tokens(settings.oauth)))
    if settings.test_clock:
        rows.append(("test clock", f'POST {{"advance_s": 15}} to {url}{PREFIX}clock'))
    rows.append(("health", f"{url}{PREFIX}health"))
    width = max(len(name) for name, _ in rows) + 2
    lines = [f"  {name:<{width}}{text}" for name, text in rows]
    return "\n".join([f"Strongroom {__version__} is ready.", *_console(app), "", *lines, ""])


def _console(app: App) -> list[str]:
    url = console_url(app.settings, app.ports)
    return [f"Console: {url}/"] if url else []


def _tokens(oauth: OAuth) -> str:
    whose = "any issuer" if oauth.issuer is None else oauth.issuer
    checked = "" if oauth.keys is not None else "; development mode: signatures are not checked"
    return f"of {whose}{checked}"


def _promise(app: App) -> str:
    if app.settings.store is not None:
        return _promise_of_database(app)
    if app.settings.data is None:
        return "nothing outlives this process: for tests"
    return "durable: what is answered survives kill -9 and power loss"


def _promise_of_database(app: App) -> str:
    from strongroom.engines.postgres.store import PostgresEngine

    if isinstance(app.store, PostgresEngine) and app.store.has_standbys:
        return "durable: what is answered is in PostgreSQL, and on its synchronous standbys"
    return "durable: what is answered is in PostgreSQL, which waits for no standby"


def _account_rows(app: App, account: Account, urls: Urls) -> list[tuple[str, str]]:
    rows = [
        ("" if index else f"{service.value} service", url)
        for service, own in urls.items()
        for index, url in enumerate(own)
    ]
    if account == development_account() and _is_usual(app):
        # SDKs know its key and its URLs, so they need not fill a screen at each start.
        rows.append(("connection string", "UseDevelopmentStorage=true"))
        rows.append(("", "docs/clients.md has the known key, and the string written out"))
        return rows
    rows.append(("connection string", connection_string(urls, account.name, _shown_key(account))))
    if account != development_account():
        rows.append(
            ("", "KEY: yours; strongroom account list --show prints those of a file or a store")
        )
    return rows


def _is_usual(app: App) -> bool:
    """Whether the short connection string of the development account leads here."""
    ports = tuple(app.ports[service.value] for service in _SERVED)
    settings = app.settings
    return ports == DEFAULT_PORTS and settings.tls is None and is_loopback(settings.host)


def _one_port_rows(account: Account, urls: Urls) -> list[tuple[str, str]]:
    """Return the rows of the port of all services; its URLs are in the connection string."""
    others = [("", url) for own in urls.values() for url in own[1:]]
    return [("one port", connection_string(urls, account.name, _shown_key(account))), *others]


def _shown_key(account: Account) -> str:
    return DEVELOPMENT_ACCOUNT_KEY if account == development_account() else "KEY"


def mount_rows(host: str, port: int, account: str) -> list[tuple[str, str]]:
    """Each a label and a command. `host` is how a client on this machine reaches the server."""
    bracketed = f"[{host}]" if ":" in host else host
    options = f"vers=3.1.1,port={port},seal,username={account},password=KEY,serverino"
    return [
        ("file shares, SMB", f"{bracketed} port {port}; the password is the account's key (KEY)"),
        ("  smbclient", f"smbclient //{host}/{_SHARE} -p {port} -m SMB3 -U {account}%KEY"),
        ("  Linux", f"mount -t cifs //{host}/{_SHARE} /mnt -o {options}"),
        (
            "  Windows 11",
            rf"net use * \\{host}\{_SHARE} /user:{account} KEY /tcpport:{port}"
            " (24H2 and later)",
        ),
        ("  macOS", f"mount_smbfs //{account}@{bracketed}:{port}/{_SHARE} ~/mnt"),
        (
            "  Python",
            f'smbclient.register_session("{host}", username="{account}", password=KEY, '
            f"port={port}) of smbprotocol",
        ),
    ]
