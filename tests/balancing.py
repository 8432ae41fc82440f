"""HAProxy in front of two gateways of one store: the next request goes to the next gateway.

Also the next request on one connection does, so that any client switches between them. Both
gateways listen on the ports of the balancer, each on an address of its own within 127.0.0.0/8. So
they know URLs of the balancer as their own, as they would behind one name.

Lives here: the balancer. Must not live here: the gateways (over_postgres.py, balanced.py).
"""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from strongroom.testing.ports import HOST
from tests.coordination.servers import program

GATEWAYS: Final = ("127.0.0.2", "127.0.0.3")
_START_S: Final = 30.0
_GLOBAL: Final = """
global
    maxconn 2000
    # A header may be as long as the gateways allow.
    tune.bufsize 131072
defaults
    mode http
    timeout connect 5s
    timeout client 180s
    timeout server 180s
    # A gateway that is being started again refuses connections for a moment.
    retries 3
    option redispatch 1
"""
_EACH: Final = """
listen port{port}
    bind {host}:{port}
    balance roundrobin
"""
_FIRST: Final = """
listen port{port}
    mode tcp
    bind {host}:{port}
    server first {gateway}:{port}
"""


class Balancer:
    """The process; a context manager that ends it.

    Arguments:
        ports: whose requests go to both gateways in turn.
        first: ports whose connections go to the first gateway.
    """

    def __init__(self, ports: Sequence[int], first: Sequence[int] = ()) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="strongroom-balancer-")
        folder = Path(self._folder.name)
        file = folder / "haproxy.cfg"
        file.write_text("\n".join([_GLOBAL, *map(_each, ports), *map(_first, first)]))
        self._log = folder / "log"
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [program("haproxy", "haproxy"), "-db", "-f", str(file)],
                stdout=output,
                stderr=output,
            )
        for port in (*ports, *first):
            self._await(port)

    def stop(self) -> None:
        """End it. Idempotent."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _await(self, port: int) -> None:
        end = time.monotonic() + _START_S
        while not _listens(port):
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            assert time.monotonic() < end, self._log.read_text()[-2000:]
            time.sleep(0.01)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _each(port: int) -> str:
    servers = (f"    server at{number} {one}:{port}" for number, one in enumerate(GATEWAYS))
    return _EACH.format(host=HOST, port=port) + "\n".join(servers) + "\n"


def _first(port: int) -> str:
    return _FIRST.format(host=HOST, port=port, gateway=GATEWAYS[0])
