"""A real RabbitMQ broker for tests: a node of its own, on loopback, with its files in a folder.

Lives here: starting it with a user of the test, and its epmd (the port mapper of Erlang nodes) in
the foreground. Both are stopped by process id.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from strongroom.clock import SystemClock
from strongroom.servers.certificates.self_signed import self_signed_certificate
from strongroom.testing.ports import HOST, free_port

USER, PASSWORD = "app", "s3cret/word"
_START_S = 90.0
_SCRIPT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""The package's own script. The one on the path changes the user and the folder."""


class Broker:
    """A node and its port mapper.

    Arguments:
        folder: the folder of all its files.
    """

    def __init__(self, folder: Path) -> None:
        epmd = shutil.which("epmd")
        if epmd is None or not _SCRIPT.exists():
            pytest.fail("RabbitMQ is missing; install it: apt-get install -y rabbitmq-server")
        self._folder, self.port = folder, free_port()
        self.tls_port, epmd_port = free_port(), free_port()
        self.certificate, key = self_signed_certificate(folder, SystemClock())
        settings = folder / "rabbitmq.conf"
        settings.write_text(
            f"listeners.tcp.default = {HOST}:{self.port}\n"
            f"listeners.ssl.default = {HOST}:{self.tls_port}\n"
            f"ssl_options.certfile = {self.certificate}\nssl_options.keyfile = {key}\n"
            "ssl_options.verify = verify_none\n"
            f"default_user = {USER}\ndefault_pass = {PASSWORD}\n"
            "loopback_users = none\ndisk_free_limit.absolute = 1MB\nlog.console = true\n",
            encoding="utf-8",
        )
        (folder / "plugins").write_text("[].\n", encoding="utf-8")
        self._environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(folder),  # the folder of Erlang's cookie
            "LANG": "C.UTF-8",
            "ERL_EPMD_ADDRESS": HOST,
            "ERL_EPMD_PORT": str(epmd_port),
            "RABBITMQ_NODENAME": f"strongroom{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_CONFIG_FILE": str(settings),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        self._epmd = subprocess.Popen(
            [epmd, "-port", str(epmd_port), "-address", HOST],
            env=self._environment,
            start_new_session=True,
        )
        self._node: subprocess.Popen[bytes] | None = None
        try:
            self.start()
        except BaseException:
            self.stop()
            raise

    def start(self) -> None:
        """Start the node with its present data, and wait until it accepts connections."""
        log = self._folder / "console.log"
        with log.open("ab") as output:
            self._node = subprocess.Popen(
                [str(_SCRIPT)],
                env=self._environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        end_s = time.monotonic() + _START_S
        while not self._listens():
            assert self._node.poll() is None, log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < end_s, log.read_text(errors="replace")[-3000:]
            time.sleep(0.1)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0

    def kill(self) -> None:
        """End the node at once, with all of its processes."""
        if self._node is not None:
            _kill_group(self._node)
            self._node = None

    def send(self, number: signal.Signals) -> None:
        """Send the node's processes a signal."""
        if self._node is not None:
            os.killpg(self._node.pid, number)

    def stop(self) -> None:
        """End the node and its port mapper."""
        self.kill()
        _kill_group(self._epmd)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait(30)
