"""Two gateways of a store in PostgreSQL behind HAProxy, in place of the server of foreign clients.

Lives here: both processes as one server. Must not live here: the balancer (balancing.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from strongroom.auth.accounts import development_account
from strongroom.config import ACCOUNTS_FILE_NAME
from strongroom.servers.identities.accounts_file import change_accounts
from strongroom.testing.server import Ports, Server
from tests.balancing import GATEWAYS, Balancer
from tests.over_postgres import new_store


class BalancedServer(Server):
    """Both gateways, which have the same ports as the balancer. What is done to it is done to both.

    Its own process is the first gateway. Accounts are in a file of its data directory, as those of
    a single server are.
    """

    _other: Server | None = None

    def __init__(
        self,
        data: Path | None,
        test_clock: bool,
        ports: Ports,
        flags: tuple[str, ...],
        environment: Mapping[str, str],
    ) -> None:
        assert data is not None
        data.mkdir(parents=True, exist_ok=True)
        accounts, store = data / ACCOUNTS_FILE_NAME, new_store()
        change_accounts(accounts, lambda before: before or (development_account(),))
        both = (*flags, "--store", store.url, "--store-schema", store.schema)
        both += ("--store-mode", "active-active", "--store-connections", str(store.connections))
        both += ("--accounts-file", str(accounts))
        first, second = ((*both, "--host", host) for host in GATEWAYS)
        super().__init__(data, test_clock, ports, first, environment)
        beside = data.with_name(f"{data.name}-beside")
        self._other = Server(beside, test_clock, ports, second, environment)
        self._balancer = Balancer(ports)

    @property
    def exit_code(self) -> int | None:
        """The one that is not 0, if one of them is not."""
        return super().exit_code or (None if self._other is None else self._other.exit_code)

    def output(self, start: int = 0) -> str:
        """Return what the first has said, and without `start` also what the other has."""
        other = "" if start or self._other is None else self._other.output()
        return super().output(start) + other

    def shares_its_requests(self) -> bool:
        """Whether both gateways were asked. Of few requests, each may be the first at its port."""
        assert self._other is not None
        asked = [said.count(" status=") for said in (super().output(), self._other.output())]
        return min(asked) > 0 or sum(asked) <= len(self._endpoint.ports)

    def stop(self) -> None:
        super().stop()
        if self._other is not None:
            self._other.stop()

    def kill(self) -> None:
        super().kill()
        if self._other is not None:
            self._other.kill()

    def restart(self) -> None:
        super().restart()
        assert self._other is not None
        self._other.restart()

    def close(self) -> None:
        if self._other is not None:
            self._balancer.stop()
            self._other.close()
        super().close()
