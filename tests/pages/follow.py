"""Following a page: its blocks are run from top to bottom, as by a reader, in one folder.

Lives here: what stands for the reader's machine (ports, folders, programs), and the order. Must not
live here: reading pages (blocks.py), the pages themselves.

`strongroom serve` starts a server, which the rest of the page talks to. Without one, a page talks
to the server that all tests share. Commands that only read, write and return run in this process.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, chdir, suppress
from pathlib import Path

from strongroom.testing.ports import free_port
from strongroom.testing.server import InProcessServer, Server
from tests.cli.command import in_process
from tests.pages.blocks import ROOT, Block, blocks
from tests.pages.commands import complaints, lines_of, runs_here, words_of
from tests.pages.python_runs import PythonRuns

_TIMEOUT_S = 100
# Where a page keeps things; they lie in the folder of the test instead.
_PLACES = re.compile(r"(?<![\w.])/(srv|backups)(?![\w.-])")
_OWN_PROGRAM = re.compile(r"(?:^|-- |&& )\./([\w.-]+)", re.MULTILINE)
_PORTS = (10000, 10001, 10002, 10003)
_SMB_PORT = 4450
_CONSOLE_PORT = 10010

Served = Server | InProcessServer
RequireTool = Callable[[str], str]


class Follower:
    """A reader at work.

    Arguments:
        folder: where the reader is.
        shared: the server that a page talks to which starts none.
        python: runs blocks of Python.
        node: finds the program that runs JavaScript.
    """

    def __init__(
        self, folder: Path, shared: Served, python: PythonRuns, node: RequireTool | None = None
    ) -> None:
        self.folder = folder
        self.server: Served = shared
        self._python = python
        self._node = node
        self._smb_port = _SMB_PORT
        self._console_port = _CONSOLE_PORT
        self._number = 0
        self._servers = ExitStack()

    def follow(self, text: str) -> int:
        """Follow a page; return how many blocks were run. Raises AssertionError with the line."""
        printed, run = "", 0
        with self._servers:
            for block in blocks(text):
                where = f"line {block.line}"
                if block.outline:
                    wrong = list(complaints(block.code)) if block.language == "sh" else []
                    assert not wrong, f"{where}: {wrong}"
                elif block.is_run:
                    printed += self._run(block, where)
                    run += 1
                elif block.name:
                    path = self.folder / block.name
                    path.write_text(self.here(block.code), encoding="utf-8")
                elif block.fenced and block.language == "text" and printed:
                    said = self.here(block.code)
                    assert f"\n{printed}".endswith(f"\n{said}"), f"{where}: printed is {printed}"
                    printed = ""
        return run

    def here(self, code: str) -> str:
        """Return the same code for this machine: this server, and folders of the test."""
        code = _PLACES.sub(rf"{self.folder}/\1", code)
        for port, url in zip(_PORTS, self._urls(), strict=True):
            code = re.sub(rf"\b{port}\b", url.rpartition(":")[2], code)
        code = re.sub(rf"\b{_SMB_PORT}\b", str(self._smb_port), code)
        code = re.sub(rf"\b{_CONSOLE_PORT}\b", str(self._console_port), code)
        return code.replace("UseDevelopmentStorage=true", self.server.connection_string)

    def _urls(self) -> tuple[str, str, str, str]:
        server = self.server
        return server.url, server.queue_url, server.table_url, server.file_url

    def variables(self) -> dict[str, str]:
        """Return the environment: this project's programs first, nobody's own settings."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        store = f"azure://devstoreaccount1/meeting?endpoint={self.server.url}/devstoreaccount1"
        own = {
            "HOME": str(self.folder),
            "PYTHONPATH": f"{self.folder}{os.pathsep}{ROOT}",
            "LANG": "C.UTF-8",
        }
        said = {"AZURE_STORAGE_CONNECTION_STRING": "", "AZURITE_ACCOUNTS": ""}
        return {"PATH": path, **own, **said, "STRONGROOM_STORE": store}

    def _run(self, block: Block, where: str) -> str:
        self._number += 1
        if block.language == "sh" and not block.name:
            return self._commands(block.code, where)
        end = "py" if block.language == "python" else "mjs"
        script = self.folder / (block.name or f"block{self._number}.{end}")
        script.write_text(self.here(block.code), encoding="utf-8")
        if block.name:
            return ""
        if block.language == "python":
            ran = self._python.run(script, self.variables())
            assert ran.code == 0, f"{where}: {ran.err[-3000:]}"
            return ran.out
        assert self._node is not None, f"{where}: nothing runs JavaScript here"
        return self._program([self._node("node"), script.name], where)

    def _commands(self, code: str, where: str) -> str:
        """Run the lines of a block: servers beside it, the rest here or by one shell."""
        for name in set(_OWN_PROGRAM.findall(code)):
            self._make_program(self.folder / name)
        lines = lines_of(code)
        served = [line for line in lines if line.split()[:2] == ["strongroom", "serve"]]
        for line in served:
            self._serve(line)
        rest = [self.here(line) for line in lines if line not in served]
        if lines and all(line.startswith("pytest") for line in lines):
            return self._tests(lines, where)
        if all(runs_here(words_of(line)) for line in rest):
            return "".join(self._here(line, where) for line in rest)
        if not served:
            rest = [self.here(code)] if "$ " not in code[:2] else rest
        return self._program(["bash", "-euo", "pipefail", "-c", "\n".join(rest)], where)

    def _tests(self, lines: list[str], where: str) -> str:
        """Run pytest as a block of Python, which saves most of its imports."""
        arguments = [[*line.split()[1:], "-p", "no:cacheprovider"] for line in lines]
        files = [path.read_text(encoding="utf-8") for path in self.folder.glob("test_*.py")]
        # The comment names what the tests import, for whoever forks.
        code = f"import pytest  # {' '.join(re.findall(r'azure[.a-z]+', ''.join(files)))}\n"
        code += "import strongroom.testing\n"
        code += "".join(f"assert pytest.main({one}) == 0\n" for one in arguments)
        return self._run(Block(0, "python", code), where)

    def _here(self, line: str, where: str) -> str:
        words = words_of(line)
        assert words is not None
        with chdir(self.folder):
            ran = in_process(*words[1:], STRONGROOM_STORE=self.variables()["STRONGROOM_STORE"])
        assert ran.code == 0, f"{where}: {line}: {ran.out}{ran.err}"
        return ran.out

    def _program(self, command: list[str], where: str) -> str:
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=_TIMEOUT_S)
            finally:
                # What the block left running in the background ends too.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == 0, f"{where}: {out[-1000:]}{err[-3000:]}"
        return out

    def _serve(self, line: str) -> None:
        """Start the server of a line, in place of the one before."""
        words = words_of(self.here(line))
        assert words is not None, line
        data = self.folder / "strongroom-data"
        # Files that the page has made lie in its folder.
        made = {path.name for path in self.folder.iterdir() if path.is_file()}
        flags = [str(self.folder / word) if word in made else word for word in words[2:]]
        if "--data" in flags:
            at = flags.index("--data")
            data = self.folder / flags[at + 1]
            del flags[at : at + 2]
        if "--smb" in flags:
            self._smb_port = free_port()
            flags += ["--smb-port", str(self._smb_port)]
        if "--console" in flags:
            self._console_port = free_port()
            flags += ["--console-port", str(self._console_port)]
        self._servers.close()
        data.parent.mkdir(parents=True, exist_ok=True)
        started = Server.start(data=data, test_clock=False, flags=tuple(flags))
        self.server = self._servers.enter_context(started)

    def _make_program(self, path: Path) -> None:
        """Make what stands for a program of the reader's own."""
        if not path.exists():
            path.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
            path.chmod(0o700)
