"""The services of deploy/compose/two-gateways as processes on loopback, without containers.

Lives here: what a container engine would do (data folders, addresses, the environment), and the
processes. Must not live here: what they run, which is read from the files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

from strongroom.testing.ports import HOST, free_port
from tests.coordination.servers import (
    PostgresServer,
    RealServer,
    StoreServer,
    folder_of,
    program,
    user_of_postgres,
)
from tests.engines.postgres.servers import SMALL, memory_folder
from tests.pages.blocks import ROOT

FOLDER: Final = ROOT / "deploy" / "compose" / "two-gateways"
PASSWORD: Final = "0a1b2c3d4e5f"
_GATEWAYS: Final = {"gateway1": "127.0.0.2", "gateway2": "127.0.0.3"}
_SERVICES: Final = ("blob", "queue", "table", "file")
_FIRST_PORT: Final = 10000


class Composition:
    """The services; a context manager that stops them.

    Arguments:
        folder: for logs and the gateways' own files.

    Attributes:
        services: the part of the compose file, by name.
        ports: those that the balancer has in place of 10000 and the next ones.
        primary, standby, gateways: the processes.
    """

    primary: PostgresServer
    standby: PostgresServer

    def __init__(self, folder: Path) -> None:
        text = (FOLDER / "compose.yaml").read_text(encoding="utf-8")
        self.services: dict[str, Any] = yaml.safe_load(text)["services"]
        self.ports = [free_port() for _ in _SERVICES]
        self.gateways: dict[str, RealServer] = {}
        self._folder = folder
        self._stack = ExitStack()
        programs = Path(program("initdb", "postgresql")).resolve().parent
        self._path = f"{programs}{os.pathsep}{os.environ['PATH']}"

    def __enter__(self) -> Self:
        try:
            self.primary = self._primary()
            self.standby = self._standby()
            for name in _GATEWAYS:
                self._start_gateway(name)
            self._balancer()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def healthcheck(self, service: str) -> int:
        """Run the health check of a service, and return its exit code."""
        kind, *command = self.services[service]["healthcheck"]["test"]
        assert kind == "CMD"
        environment = {"PATH": self._path, "PGPORT": _port(self.primary)}
        return subprocess.run(self._here(command), check=False, env=environment).returncode

    def _primary(self) -> PostgresServer:
        """Make and start the primary as the entry point of its image does."""
        user, data = user_of_postgres(), folder_of(user_of_postgres(), memory_folder())
        secret = data.with_name(f"{data.name}.password")
        self._stack.callback(secret.unlink)
        secret.write_text(PASSWORD)
        command = ["initdb", "-D", str(data), "-A", "scram-sha-256", "-N", "-U", "postgres"]
        command += ["-E", "UTF8", "--locale=C"]
        environment = {"PATH": self._path}
        subprocess.run(
            [*command, f"--pwfile={secret}"],
            check=True,
            user=user,
            cwd="/",
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        with (data / "pg_hba.conf").open("a") as access:
            access.write("host all all all scram-sha-256\n")
        server = self._database(data, "db1", ["postgres", "-D", str(data)])
        script = _readable(FOLDER / "primary.sh")
        environment |= {"PGHOST": HOST, "PGPORT": _port(server), "PGDATA": str(data)}
        environment |= {"PGPASSWORD": PASSWORD, "POSTGRES_PASSWORD": PASSWORD}
        subprocess.run(["sh", script], check=True, user=user, cwd="/", env=environment)
        server.stop()
        server.restart()
        return server

    def _standby(self) -> PostgresServer:
        data = folder_of(user_of_postgres(), memory_folder())
        variables = {"PRIMARY": HOST, "PGPORT": _port(self.primary), "PGDATA": str(data)}
        variables |= {"PGPASSWORD": PASSWORD, "PATH": self._path}
        given = [f"{name}={value}" for name, value in variables.items()]
        shell, _ = self.services["db2"]["entrypoint"]
        command = ["env", *given, shell, _readable(FOLDER / "standby.sh")]
        return self._database(data, "db2", command)

    def _database(self, data: Path, name: str, command: list[str]) -> PostgresServer:
        port = free_port()
        command[0] = shutil.which(command[0], path=self._path) or command[0]
        flags = ["-p", str(port), "-h", HOST, "-k", "", *SMALL]
        log = self._folder / f"{name}.log"
        server = PostgresServer([*command, *flags], port, log, user_of_postgres())
        self._stack.callback(server.stop)
        server.data = data
        server.url = f"postgres://postgres:{PASSWORD}@{server.address}/postgres"
        server.wait(server.answers)
        return server

    def _start_gateway(self, name: str) -> None:
        given = self.services[name]
        hosts = f"{self.primary.address},{self.standby.address}"
        url = given["environment"]["STRONGROOM_STORE"].replace("db1,db2", hosts)
        url = url.replace("${DATABASE_PASSWORD:?set it to letters and digits}", PASSWORD)
        command = ["env", f"STRONGROOM_STORE={url}", sys.executable, "-m", *given["command"]]
        command = [one.replace("0.0.0.0", _GATEWAYS[name]) for one in command]
        command += ["--data", str(self._folder / name)]
        for service, port in zip(_SERVICES, self.ports, strict=True):
            command += [f"--{service}-port", str(port)]
        server = RealServer(command, self.ports[0], self._folder / f"{name}.log")
        self._stack.callback(server.stop)
        self.gateways[name] = server

    def _balancer(self) -> None:
        text = (FOLDER / "haproxy.cfg").read_text(encoding="utf-8")
        for name, address in _GATEWAYS.items():
            text = text.replace(f"{name}:", f"{address}:")
        (text,) = self._here([text.replace("bind :", f"bind {HOST}:")])
        file = self._folder / "haproxy.cfg"
        file.write_text(text)
        command = [program("haproxy", "haproxy"), "-db", "-f", str(file)]
        log = self._folder / "haproxy.log"
        balancer = self._stack.enter_context(StoreServer(command, self.ports[0], log))
        balancer.wait(lambda: self.healthcheck("balancer") == 0)

    def _here(self, words: list[str]) -> list[str]:
        """Replace the published ports by those of this run."""
        for at, port in enumerate(self.ports):
            words = [word.replace(str(_FIRST_PORT + at), str(port)) for word in words]
        return words


def _port(server: RealServer) -> str:
    return server.address.rpartition(":")[2]


def _readable(script: Path) -> str:
    """Return a copy of a script that the user of PostgreSQL may read."""
    copy = folder_of(user_of_postgres()) / script.name
    shutil.copy(script, copy)
    return str(copy)
