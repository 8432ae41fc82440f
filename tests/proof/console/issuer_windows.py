"""A window that signs in at an issuer, and the server that takes its tokens.

Lives here: the server, its issuer, the way through the sign-in. Must not live here: what is
expected (test_issuer_sign_in.py, test_file_tokens.py).
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser

from strongroom.testing.ports import HOST, free_port
from strongroom.testing.server import Server
from tests.auth import tokens
from tests.conformance.client import Client
from tests.interop.console.browsers import EVENT_TIMEOUT_MS, Console
from tests.interop.console.conftest import KEY
from tests.servers.console.small_issuer import CLIENT, SmallIssuer, issuing

_STORED = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"


@dataclass
class SignedInAt:
    """A server with a console over TLS, and the issuer of its tokens."""

    url: str
    issuer: SmallIssuer
    server: Server

    def issue_for(self, principal: str) -> str:
        """Let the issuer know this person from now on; return the token that it will give."""
        token = tokens.token(iss=self.issuer.url, oid=principal)
        self.issuer.access_token = token
        return token

    def client(self, service_url: str) -> Client:
        """Return a client with the account's key, of the service at this address."""
        return Client(urllib.parse.urlsplit(service_url).port or 0, KEY)


@contextmanager
def issuer_and_server(
    folder: Path, roles: dict[str, str], *more_flags: str
) -> Iterator[SignedInAt]:
    """Serve the development account, in which each principal has one role."""
    keys, roles_file, port = folder / "keys.json", folder / "roles.json", free_port()
    keys.write_bytes(tokens.key_set())
    assignments = [
        {"principal": principal, "role": role, "account": KEY.account}
        for principal, role in roles.items()
    ]
    roles_file.write_text(json.dumps({"assignments": assignments}))
    roles_file.chmod(0o600)
    with issuing(folder) as issuer:
        flags = (
            *("--console-port", str(port), "--tls"),
            *("--oauth-issuer", issuer.url, "--oauth-keys", str(keys)),
            *("--roles-file", str(roles_file), "--console-oidc-client", CLIENT),
            *more_flags,
        )
        trusted = {"SSL_CERT_FILE": str(issuer.certificate)}
        with Server.start(flags=flags, environment=trusted, test_clock=False) as server:
            yield SignedInAt(f"https://{HOST}:{port}", issuer, server)


@contextmanager
def issuer_window(browser: Browser, place: SignedInAt) -> Iterator[Console]:
    """Provide a window at the sign-in. At the end, it asked the issuer for nothing but the sign-in,
    and nothing is stored."""
    place.issuer.mood = ""
    place.issuer.asked.clear()
    context = browser.new_context(
        ignore_https_errors=True, permissions=["clipboard-read", "clipboard-write"]
    )
    context.set_default_timeout(EVENT_TIMEOUT_MS)
    console = Console(context.new_page(), place.url)
    yield console
    own = (place.url, "blob:")
    foreign = [one.url for one in console.sent if not one.url.startswith(own)]
    assert all(url.startswith(f"{place.issuer.url}/authorize?") for url in foreign), foreign
    assert console.page.evaluate(_STORED) == '[{},{},""]'
    assert console.page.evaluate("window.violations") == []
    assert console.complaints == []
    context.close()


def sign_in(console: Console, place: SignedInAt, path: str = "/") -> None:
    """Follow the link to the issuer, from an address of the page."""
    console.open(path)
    name = f"Sign in with {urllib.parse.urlsplit(place.issuer.url).netloc}"
    console.page.get_by_role("link", name=name, exact=True).click()
