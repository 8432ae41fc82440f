"""What `strongroom serve` prints when it is ready: what a user needs next.

Lives here: text. Must not live here: keys other than the development key, which everybody knows.
"""

from __future__ import annotations

from strongroom import __version__
from strongroom.app import App
from strongroom.auth.accounts import (
    DEVELOPMENT_ACCOUNT_KEY,
    DEVELOPMENT_ACCOUNT_NAME,
    Account,
    development_account,
)
from strongroom.auth.request import Service
from strongroom.config import DEFAULT_PORTS, Settings, is_loopback
from strongroom.servers.own_endpoints import PREFIX

_ACCOUNTS_SHOWN = 5
_EVERYWHERE = ("", "0.0.0.0", "::")


def base_url(settings: Settings, port: int) -> str:
    """The server's URL as a client on this machine may use it."""
    scheme = "http" if settings.tls is None else "https"
    host = "127.0.0.1" if settings.host in _EVERYWHERE else settings.host.strip("[]")
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def connection_string(app: App, name: str, key: str) -> str:
    """A connection string of the account `name`, as every Azure SDK takes it."""
    urls = {service: base_url(app.settings, port) for service, port in app.ports.items()}
    scheme = urls[Service.BLOB].partition(":")[0]
    endpoints = "".join(
        f"{service.value.title()}Endpoint={url}/{name};" for service, url in urls.items()
    )
    return f"DefaultEndpointsProtocol={scheme};AccountName={name};AccountKey={key};{endpoints}"


def banner(app: App) -> str:
    """The lines, without a last line break."""
    settings = app.settings
    url = base_url(settings, app.ports[Service.BLOB])
    rows: list[tuple[str, str]] = []
    accounts = app.accounts.all()
    for account in accounts[:_ACCOUNTS_SHOWN]:
        rows += _account_rows(app, account)
    if len(accounts) > _ACCOUNTS_SHOWN:
        rows.append(("", f"and {len(accounts) - _ACCOUNTS_SHOWN} more accounts"))
    rows.append(("data", "in memory" if settings.data is None else str(settings.data.resolve())))
    rows.append(("promise", _promise(settings)))
    if app.certificate is not None:
        rows.append(("certificate", f"{app.certificate} (clients must trust this file)"))
    if not is_loopback(settings.host):
        rows.append(("listens on", f"{settings.host or 'every address'}, for other machines too"))
    if settings.test_clock:
        rows.append(("test clock", f'POST {{"advance_s": 15}} to {url}{PREFIX}clock'))
    rows.append(("health", f"{url}{PREFIX}health"))
    width = max(len(name) for name, _ in rows) + 2
    lines = [f"  {name:<{width}}{text}" for name, text in rows]
    return "\n".join([f"Strongroom {__version__} is ready.", "", *lines, ""])


def _promise(settings: Settings) -> str:
    if settings.data is None:
        return "nothing outlives this process: for tests"
    return "durable: what is answered survives kill -9 and power loss"


def _account_rows(app: App, account: Account) -> list[tuple[str, str]]:
    settings = app.settings
    rows = [
        (f"{service.value} service", f"{base_url(settings, port)}/{account.name}")
        for service, port in app.ports.items()
    ]
    if account == development_account():
        text = connection_string(app, DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)
        rows.append(("connection string", text))
        usual = tuple(app.ports.values()) == DEFAULT_PORTS
        if usual and settings.tls is None and is_loopback(settings.host):
            rows.append(("", "or UseDevelopmentStorage=true"))
    else:
        text = connection_string(app, account.name, "KEY")
        rows.append(("connection string", text))
        rows.append(("", "KEY: yours; strongroom account list --show prints those of a file"))
    return rows
