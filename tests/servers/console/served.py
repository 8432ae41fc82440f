"""A server with a console for tests, and a client that asks its port.

Lives here: the server, signing, and the raw exchange. Must not live here: what answers must be.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from strongroom.auth.accounts import Account
from strongroom.clock import SystemClock
from strongroom.config import AccountSources, ConsoleSettings, Settings
from strongroom.testing.ports import HOST, free_port
from strongroom.testing.server import InProcessServer
from strongroom.values import rfc1123
from tests.conformance.signing import authorization

SHOP, BANK = Account("shop", (b"first",)), Account("bank", (b"second",))
API: Final = "/.strongroom/console/v1/"
VERSION: Final = "2025-11-05"
NO_FIELDS: Final[Mapping[str, str]] = {}
ASSETS: Final = {
    "index.html": b"<!DOCTYPE html><title>console</title><script src=/assets/console.js></script>",
    "assets/console.js": b"export {};",
    "assets/console.css": b"body {}",
    "assets/icon.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "sources.json": b"{}",
}


@dataclass(frozen=True)
class Answer:
    """An answer: headers by lower-case name."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The document of the body."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Port:
    """One port of a server on loopback."""

    port: int

    @property
    def authority(self) -> str:
        """The Host header that a browser would send."""
        return f"{HOST}:{self.port}"

    def ask(
        self,
        target: str,
        method: str = "GET",
        body: bytes | None = None,
        fields: Mapping[str, str] = NO_FIELDS,
    ) -> Answer:
        """Send a request, with its own Host unless `fields` has another."""
        fields = {"Host": self.authority, **fields}
        connection = http.client.HTTPConnection(HOST, self.port, timeout=60)
        with contextlib.closing(connection):
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in fields.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            found = connection.getresponse()
            named = {name.lower(): value for name, value in found.getheaders()}
            return Answer(found.status, named, found.read())

    def signed(
        self,
        target: str,
        account: Account = SHOP,
        method: str = "GET",
        body: bytes | None = None,
        fields: Mapping[str, str] = NO_FIELDS,
    ) -> Answer:
        """Send a request that an account's key signs."""
        fields = {
            **fields,
            "x-ms-date": rfc1123(SystemClock().wall_ticks()),
            "x-ms-version": VERSION,
        }
        length = {} if body is None else {"Content-Length": str(len(body))}
        key = base64.b64encode(account.keys[0]).decode()
        pairs = list({**fields, **length}.items())
        signature = authorization("SharedKey", account.name, key, method, target, pairs)
        return self.ask(target, method, body, {**fields, "Authorization": signature})

    def api(self, target: str, account: Account = SHOP) -> Answer:
        """Ask the read API as an account."""
        return self.signed(f"{API}{target}", account)


@dataclass(frozen=True)
class ServedConsole(Port):
    """A server with a console; `port` is that of the console."""

    server: InProcessServer
    ports: Mapping[str, int]

    def own(self, service: str) -> Port:
        """The service's own port."""
        return Port(self.ports[service])


def built(folder: Path) -> Path:
    """Write a small built page into a folder, and return the folder."""
    for name, content in ASSETS.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content)
    return folder


def settings(*accounts: Account, **more: Any) -> Settings:
    """Settings of a server in memory with a console, on free ports."""
    console = ConsoleSettings(free_port(), folder=more.pop("folder", None))
    return Settings(
        data=None,
        blob_port=free_port(),
        queue_port=free_port(),
        table_port=free_port(),
        file_port=free_port(),
        accounts=AccountSources(accounts),
        console=more.pop("console", console),
        **more,
    )


@contextlib.contextmanager
def serving(*accounts: Account, **more: Any) -> Iterator[ServedConsole]:
    """Serve accounts (one of them: `shop`), with a console."""
    with InProcessServer(settings(*(accounts or (SHOP,)), **more)) as server:
        ports = dict(server._app.ports)
        yield ServedConsole(ports["console"], server, ports)


def with_console(chosen: Settings, **more: Any) -> Settings:
    """Settings with other settings of their console."""
    assert chosen.console is not None
    return replace(chosen, console=dataclasses.replace(chosen.console, **more))
