"""Proxies in front of a server: the files of the manual's page, run on loopback.

Lives here: what stands for the reader's machine (ports, certificates, folders), and the processes.
Must not live here: the configurations, which are read from docs/operators/proxies.md.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from strongroom.clock import SystemClock
from strongroom.servers.certificates.self_signed import self_signed_certificate
from strongroom.testing.ports import HOST, free_port
from strongroom.testing.server import Server
from tests.interop.tools import require_tool
from tests.pages.blocks import ROOT, blocks

_PAGE = ROOT / "docs" / "operators" / "proxies.md"
_NAME = "store.example.net"
_START_S = 30.0
# What Debian's nginx.conf has around the file of the page, with folders of the test.
_AROUND_NGINX = """\
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log warn;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/proxied;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{site}
}}
"""
_AROUND_CADDY = "{{\n    admin off\n    auto_https off\n}}\n{site}"


@dataclass(frozen=True, slots=True)
class Proxied:
    """A server behind a proxy.

    Attributes:
        url: of the proxy, without a path.
        certificate: what clients have to trust.
        connection_string: of the development account, through the proxy.
    """

    url: str
    certificate: Path
    connection_string: str


@contextmanager
def proxied(program: str, folder: Path, without: str = "") -> Iterator[Proxied]:
    """Serve behind `nginx` or `caddy`, with the page's configuration for it.

    Arguments:
        without: a line of the configuration that is left out; the beginning of it is enough.
    """
    path = require_tool(program)
    _make_hop(folder)
    certificate, key = self_signed_certificate(folder, SystemClock())
    inner, outer = free_port(), free_port()
    hop = ("--cert", str(folder / "hop.pem"), "--key", str(folder / "hop-key.pem"))
    flags = ("--one-port", str(inner), *hop)
    with Server.start(data=folder / "data", test_clock=False, flags=flags) as server:
        site = _without(_site(program), without)
        for said, here in (
            ("127.0.0.1:8443", f"127.0.0.1:{inner}"),
            ("/etc/strongroom/store.crt", str(certificate)),
            ("/etc/strongroom/store.key", str(key)),
            ("/etc/strongroom/", f"{folder}/"),
            ("listen 443 ssl", f"listen 127.0.0.1:{outer} ssl"),
            (f"{_NAME} {{", f"https://:{outer} {{\n    bind 127.0.0.1"),
        ):
            site = site.replace(said, here)
        with _running(_command(program, path, folder, site), folder, outer):
            account = server.connection_string.partition("BlobEndpoint=")[0]
            url = f"https://localhost:{outer}"
            services = ("Blob", "Queue", "Table", "File")
            ends = (f"{one}Endpoint={url}/{one.lower()}/devstoreaccount1;" for one in services)
            yield Proxied(url, certificate, account.replace("=http;", "=https;") + "".join(ends))


def _site(program: str) -> str:
    """Return the page's file for a proxy."""
    name = {"nginx": "strongroom.conf", "caddy": "Caddyfile"}[program]
    [found] = [one.code for one in blocks(_PAGE.read_text(encoding="utf-8")) if one.name == name]
    return found


def _without(site: str, start: str) -> str:
    if not start:
        return site
    lines = site.splitlines(keepends=True)
    kept = [line for line in lines if not line.strip().startswith(start)]
    assert len(kept) < len(lines), f"no line begins with {start}"
    return "".join(kept)


def _make_hop(folder: Path) -> None:
    """Make the certificate between proxy and server as the page says."""
    [command] = [
        one.code
        for one in blocks(_PAGE.read_text(encoding="utf-8"))
        if one.code.startswith("openssl")
    ]
    subprocess.run(["sh", "-ec", command], cwd=folder, check=True, capture_output=True)


def _command(program: str, path: str, folder: Path, site: str) -> list[str]:
    around = {"nginx": _AROUND_NGINX, "caddy": _AROUND_CADDY}[program]
    file = folder / f"{program}.conf"
    file.write_text(around.format(folder=folder, site=site), encoding="utf-8")
    if program == "nginx":
        _readable(folder)
        return [path, "-c", str(file), "-e", str(folder / "nginx.log")]
    return [path, "run", "--adapter", "caddyfile", "--config", str(file)]


def _readable(folder: Path) -> None:
    """Let the workers of a proxy that root starts write into the folders of the test."""
    for name in ("bodies", "proxied"):
        (folder / name).mkdir()
        if os.geteuid() == 0:
            shutil.chown(folder / name, "www-data")


@contextmanager
def _running(command: list[str], folder: Path, port: int) -> Iterator[None]:
    with (
        open(folder / "output", "wb") as output,
        subprocess.Popen(
            command,
            cwd=folder,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_DATA_HOME": str(folder)},
        ) as process,
    ):
        try:
            _await_port(process, folder, port)
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def _await_port(process: subprocess.Popen[bytes], folder: Path, port: int) -> None:
    until = time.monotonic() + _START_S
    while not _listens(port):
        said = (folder / "output").read_text(encoding="utf-8", errors="replace")
        assert process.poll() is None, said[-3000:]
        assert time.monotonic() < until, f"the proxy does not listen: {said[-3000:]}"
        time.sleep(0.02)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port)):
        return True
    return False
