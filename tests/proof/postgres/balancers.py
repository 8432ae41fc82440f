"""HAProxy and nginx in front of two gateways: the files of deploy/postgres, run on loopback.

Lives here: what stands for the reader's machines (addresses, certificates), and the processes. Must
not live here: the configurations, which are read from deploy/postgres.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from strongroom.clock import SystemClock
from strongroom.servers.certificates.self_signed import self_signed_certificate
from strongroom.testing.ports import HOST, free_port
from tests.coordination.servers import StoreServer, program
from tests.interop.proxies import _AROUND_NGINX, _make_hop, _readable
from tests.pages.blocks import ROOT
from tests.proof.postgres.gateway import Gateway
from tests.proof.postgres.http_store import Address

BALANCERS: Final = ("haproxy", "nginx")
_FILES: Final = ROOT / "deploy" / "postgres"


class Balanced:
    """Two gateways of one store behind a balancer.

    Attributes:
        services: of the balancer.
        gateways: both of them.
    """

    def __init__(self, services: Address, gateways: Sequence[Gateway]) -> None:
        self.services = services
        self.gateways = gateways

    def serving(self) -> Gateway:
        """Return the gateway that serves."""
        return next(one for one in self.gateways if one.serves())


@contextmanager
def balanced(balancer: str, url: str, folder: Path) -> Iterator[Balanced]:
    """Two gateways of the store at `url`, the first of which serves, behind a balancer."""
    certificate, key = self_signed_certificate(folder, SystemClock())
    inner = (certificate, key) if balancer == "haproxy" else _hop(folder)
    gateways: list[Gateway] = []
    try:
        gateways.append(Gateway(url, folder, "first", inner))
        gateways[0].wait(gateways[0].listens)
        gateways.append(Gateway(url, folder, "second", inner))
        gateways[1].wait(gateways[1].waits)
        outer = free_port()
        here = {
            "bind :443": f"bind {HOST}:{outer}",
            "listen 443 ssl": f"listen {HOST}:{outer} ssl",
            "/etc/strongroom/store.crt": str(certificate),
            "/etc/strongroom/store.key": str(key),
            "/etc/strongroom/": f"{folder}/",
            "gateway1.example.net:8443": gateways[0].address,
            "gateway2.example.net:8443": gateways[1].address,
        }
        with _running(balancer, folder, here, outer):
            yield Balanced(Address(outer, certificate), gateways)
    finally:
        for gateway in gateways:
            gateway.stop()


@contextmanager
def _running(balancer: str, folder: Path, here: Mapping[str, str], port: int) -> Iterator[None]:
    command = _nginx(folder, here) if balancer == "nginx" else _haproxy(folder, here)
    log = folder / f"{balancer}.out"
    with StoreServer(command, port, log) as server:
        server.wait(server.listens)
        yield


def _haproxy(folder: Path, here: Mapping[str, str]) -> list[str]:
    file = folder / "haproxy.cfg"
    file.write_text(_placed("haproxy.cfg", here))
    return [program("haproxy", "haproxy"), "-db", "-f", str(file)]


def _nginx(folder: Path, here: Mapping[str, str]) -> list[str]:
    file = folder / "nginx.conf"
    file.write_text(_AROUND_NGINX.format(folder=folder, site=_placed("nginx.conf", here)))
    _readable(folder)
    return [program("nginx", "nginx-light"), "-c", str(file), "-e", str(folder / "nginx.log")]


def _hop(folder: Path) -> tuple[Path, Path]:
    """Return a certificate for the way from the balancer to the gateways, and its key."""
    _make_hop(folder)
    return folder / "hop.pem", folder / "hop-key.pem"


def _placed(name: str, here: Mapping[str, str]) -> str:
    """Return a file of deploy/postgres with what it says of machines replaced by what is here."""
    text = (_FILES / name).read_text(encoding="utf-8")
    for said, replaced in here.items():
        text = text.replace(said, replaced)
    return text
