"""`GET session`: what the page needs before somebody signs in: where the services are, and whether
the development account is offered."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from strongroom import __version__
from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, Account, development_account
from strongroom.servers import one_port
from strongroom.servers.console.api.documents import (
    DevelopmentAccount,
    ServiceName,
    ServicePort,
    Session,
    SignInIssuer,
)
from strongroom.servers.console.origin import SERVICE_NAMES


class SessionFacts(msgspec.Struct, frozen=True):
    """What `GET session` tells.

    Attributes:
        ports: of the listeners, by their names; filled while the server starts.
        host: where clients on this machine reach the services; as a URL has it.
        scheme: of the services.
        is_local: whether every listener is on loopback.
        idle_minutes, console_url, issuer: see Session.
    """

    ports: Mapping[str, int]
    host: str
    scheme: str
    accounts: Callable[[], tuple[Account, ...]]
    is_local: bool
    idle_minutes: int
    has_test_clock: bool
    console_url: str | None = None
    issuer: SignInIssuer | None = None

    def document(self) -> Session:
        return Session(
            version=__version__,
            development_account=self._development_account(),
            issuer=self.issuer,
            services=self.service_ports(),
            console_url=self.console_url,
            idle_minutes=self.idle_minutes,
            has_test_clock=self.has_test_clock,
        )

    def service_ports(self) -> tuple[ServicePort, ...]:
        """Return where the services are: each on its own port, else on that of all services."""
        return tuple(
            self._service(name)
            for name in SERVICE_NAMES
            if name in self.ports or one_port.NAME in self.ports
        )

    def _service(self, name: ServiceName) -> ServicePort:
        port = self.ports.get(name)
        mount = "" if port is not None else f"/{name}"
        port = self.ports[one_port.NAME] if port is None else port
        return ServicePort(name=name, url=f"{self.scheme}://{self.host}:{port}{mount}", port=port)

    def _development_account(self) -> DevelopmentAccount | None:
        """Return the account of one click, if its key is no secret and the server is local."""
        known = development_account()
        is_served = any(
            one.name == known.name and one.keys == known.keys for one in self.accounts()
        )
        if not (self.is_local and is_served) or self.console_url is not None:
            return None
        return DevelopmentAccount(name=known.name, key=DEVELOPMENT_ACCOUNT_KEY)
