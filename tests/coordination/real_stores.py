"""Every store with a server, prepared for faults: behind a proxy, ready to be killed or paused.

Must not live here: the tests that use them.
"""

from __future__ import annotations

import os
import signal
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from unittest import mock

from strongroom.testing import Server
from strongroom.testing.ports import HOST
from tests.balanced import BalancedServer
from tests.coordination.proxy import Proxy
from tests.coordination.s3_server import KEYS, moto, serving
from tests.coordination.servers import (
    EtcdCluster,
    StoreServer,
    etcd_cluster,
    postgres_server,
    redis_server,
)
from tests.over_postgres import is_balanced


@dataclass
class RealStore(ABC):
    """A store and its server.

    Arguments:
        name: its name in messages.
        url: the URL through the proxies, for clients that meet faults.
        direct_url: the URL without the proxies.
        ttl_s: a short TTL that the store accepts.
        proxies: one in front of each of its servers.
    """

    name: str
    url: str
    direct_url: str
    ttl_s: float
    proxies: list[Proxy] = field(default_factory=list)

    can_be_killed = True

    @abstractmethod
    def kill(self) -> None:
        """Kill the server with SIGKILL: the leader, if there is one."""

    @abstractmethod
    def restart(self) -> None:
        """Start the killed server with its data, and wait until it answers."""

    @abstractmethod
    def pause(self) -> None:
        """Stop the server with SIGSTOP."""

    @abstractmethod
    def resume(self) -> None:
        """Resume the server."""


@dataclass
class _Strongroom(RealStore):
    server: Server = field(kw_only=True)

    def kill(self) -> None:
        self.server.kill()

    def restart(self) -> None:
        self.server.restart()

    def pause(self) -> None:
        os.kill(self.server.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.server.pid, signal.SIGCONT)


@dataclass
class _Single(RealStore):
    server: StoreServer = field(kw_only=True)

    def kill(self) -> None:
        self.server.kill()

    def restart(self) -> None:
        self.server.restart()

    def pause(self) -> None:
        self.server.pause()

    def resume(self) -> None:
        self.server.resume()


@dataclass
class _Cluster(RealStore):
    cluster: EtcdCluster = field(kw_only=True)
    chosen: int = 0

    def kill(self) -> None:
        self.chosen = self.cluster.leader()
        self.cluster.kill(self.chosen)

    def restart(self) -> None:
        self.cluster.restart(self.chosen)

    def pause(self) -> None:
        self.chosen = self.cluster.leader()
        self.cluster.pause(self.chosen)

    def resume(self) -> None:
        self.cluster.resume(self.chosen)


@dataclass
class _Unkillable(RealStore):
    """A store whose server runs in the process of the test, so it cannot be killed."""

    can_be_killed = False

    def kill(self) -> None:
        raise AssertionError(f"{self.name} cannot be killed: see can_be_killed")

    restart = pause = resume = kill


@contextmanager
def _strongroom(folder: Path, mode: str, ttl_s: float) -> Iterator[RealStore]:
    def url(address: str) -> str:
        where = f"http://{address}/devstoreaccount1"
        return f"azure://devstoreaccount1/locks?mode={mode}&endpoint={where}"

    kind = BalancedServer if is_balanced() else Server
    with kind.start(data=folder / "data", test_clock=False) as server:
        address = f"{HOST}:{server.port}"
        with Proxy(address) as proxy:
            urls = url(proxy.address), url(address)
            yield _Strongroom(f"strongroom, {mode} mode", *urls, ttl_s, [proxy], server=server)


@contextmanager
def _etcd(folder: Path) -> Iterator[RealStore]:
    with etcd_cluster(folder, 3) as cluster, ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(member.address)) for member in cluster.members]
        url = "etcd://" + ",".join(proxy.address for proxy in proxies)
        yield _Cluster("etcd, 3 members", url, cluster.url, 2.0, proxies, cluster=cluster)


@contextmanager
def _single(
    name: str, start: Callable[[Path], StoreServer], folder: Path, ttl_s: float
) -> Iterator[RealStore]:
    with start(folder) as server, Proxy(server.address) as proxy:
        url = server.url.replace(server.address, proxy.address)
        yield _Single(name, url, server.url, ttl_s, [proxy], server=server)


@contextmanager
def _s3(folder: Path) -> Iterator[RealStore]:
    with (
        mock.patch.dict(os.environ, KEYS),
        serving(moto()) as endpoint,
        Proxy(endpoint.removeprefix("http://")) as proxy,
    ):
        make_bucket = urllib.request.Request(f"{endpoint}/meeting-point", method="PUT")
        urllib.request.urlopen(make_bucket).close()
        direct = f"s3://meeting-point/locks?endpoint={endpoint}"
        url = f"s3://meeting-point/locks?endpoint=http://{proxy.address}"
        yield _Unkillable("S3 (moto)", url, direct, 2.0, [proxy])


STORES: Final[Mapping[str, Callable[[Path], AbstractContextManager[RealStore]]]] = {
    "strongroom-etag": lambda folder: _strongroom(folder, "etag", 2.0),
    "strongroom-lease": lambda folder: _strongroom(folder, "lease", 15.0),
    "etcd": _etcd,
    "postgres": lambda folder: _single("PostgreSQL", postgres_server, folder, 1.0),
    "redis": lambda folder: _single("Redis", redis_server, folder, 1.0),
    "s3": _s3,
}
