"""A server that trusts the issuer of tests/auth/tokens.py, reached by HTTPS and by plain HTTP.

How a test uses it (fixture `trusting` in conftest.py):

    user = trusting.user("Storage Blob Data Reader")          # a principal of its own, with a role
    expect(trusting.send("GET", "/c/b", user), 200)

The service is blob unless `service` names another one. Roles change while the server runs.
"""

from __future__ import annotations

import http.client
import itertools
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from azure.core.credentials import AccessToken

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME, development_account
from strongroom.auth.roles import Assignment, Assignments
from strongroom.config import AccountSources, OAuth, RolesSource, SelfSigned, Settings
from strongroom.servers.identities.accounts_file import change_accounts
from strongroom.servers.identities.roles_file import change_roles
from strongroom.testing.ports import free_port
from strongroom.testing.server import InProcessServer
from tests.auth import tokens
from tests.conformance.answer import Answer

VERSION = "2025-11-05"
NAME = DEVELOPMENT_ACCOUNT_NAME
OWNER = "Storage Blob Data Owner"
_numbers = itertools.count(1)


class Token:
    """A credential of the SDKs that always returns the same token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        return AccessToken(self._token, 4_000_000_000)


class TokenLater:
    """A credential of the SDKs' asyncio clients that always returns the same token."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        return AccessToken(self._token, 4_000_000_000)

    async def close(self) -> None:
        """Do nothing, since nothing is open."""


class Trusting:
    """The server.

    Arguments:
        folder: the folder of its files; it may be the folder of a stopped server.
        oauth: the issuer whose tokens it accepts; None = the tests' issuer.
    """

    def __init__(self, folder: Path, oauth: OAuth | None = None) -> None:
        self.keys = folder / "keys.json"
        self.roles = folder / "roles.json"
        self.accounts = folder / "accounts.json"
        if not self.keys.exists():
            self.keys.write_bytes(tokens.key_set())
            change_accounts(self.accounts, lambda _: (development_account(),))
        signed = OAuth(tokens.ISSUER, str(self.keys), tenant=tokens.TENANT)
        settings = Settings(
            data=folder / "data",
            blob_port=free_port(),
            queue_port=free_port(),
            table_port=free_port(),
            file_port=free_port(),
            accounts=AccountSources(file=self.accounts),
            tls=SelfSigned(),
            test_clock=True,
            strict=True,
            oauth=oauth or signed,
            roles=RolesSource(self.roles),
        )
        self.server = InProcessServer(settings)
        self.certificate = folder / "data" / "tls-certificate.pem"
        self._tls = ssl.create_default_context(cafile=str(self.certificate))
        server = self.server
        urls = (server.url, server.queue_url, server.table_url, server.file_url)
        self.ports = {
            name: int(url.rpartition(":")[2])
            for name, url in zip(("blob", "queue", "table", "file"), urls, strict=True)
        }

    def url(self, service: str = "blob") -> str:
        """Return the account URL, as SDKs call it."""
        return f"https://localhost:{self.ports[service]}/{NAME}"

    def sdk(self, user: str, **claims: Any) -> dict[str, Any]:
        """Return the arguments of an SDK's client that sends tokens of a user."""
        credential = Token(tokens.token(oid=user, **claims))
        return {"credential": credential, "connection_verify": str(self.certificate)}

    def user(self, *roles: str, resource: str = "", account: str = NAME) -> str:
        """Return a new principal with these roles."""
        name = f"user-{next(_numbers)}"
        self.assign(*(Assignment(name, role, account, resource) for role in roles))
        return name

    def assign(self, *more: Assignment) -> None:
        """Add assignments."""
        change_roles(self.roles, lambda before: (*before, *more))

    def dismiss(self, user: str) -> None:
        """Remove all roles of a principal."""

        def edit(before: Assignments) -> Assignments:
            return tuple(one for one in before if one.principal != user)

        change_roles(self.roles, edit)

    def send(
        self,
        method: str,
        target: str,
        user: str | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: bytes = b"",
        *,
        token: str | None = None,
        service: str = "blob",
        plain: bool = False,
    ) -> Answer:
        """Send one request on a connection of its own.

        Arguments:
            user: the user whose token is sent; `token` replaces it; neither = no Authorization
                header.
            headers: headers with the value None are omitted.
            plain: whether to use HTTP without TLS, on the same port.
        """
        if user is not None:
            token = tokens.token(oid=user)
        fields: dict[str, str | None] = {"x-ms-version": VERSION, "Content-Length": str(len(body))}
        if service == "file":
            fields["x-ms-file-request-intent"] = "backup"
        if token is not None:
            fields["Authorization"] = f"Bearer {token}"
        fields |= headers or {}
        port = self.ports[service]
        connection: http.client.HTTPConnection
        if plain:
            connection = http.client.HTTPConnection("localhost", port, timeout=30)
        else:
            connection = http.client.HTTPSConnection(
                "localhost", port, timeout=30, context=self._tls
            )
        try:
            sent = {name: value for name, value in fields.items() if value is not None}
            connection.request(method, f"/{NAME}{target}", body or None, sent)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        found = tuple(answer.getheaders())
        return Answer(method, answer.status, answer.reason, found, data)

    def stop(self) -> None:
        """End the server."""
        self.server.stop()
