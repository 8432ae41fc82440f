"""Runs blocks of Python, each in a process of its own that has its modules already.

Lives here: a process that imports what most blocks need, and forks for each block. A new
interpreter for each would spend most of its time on imports. Must not live here: pages.

    python -m tests.pages.python_runs      reads requests, one line of JSON each; answers likewise
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.pages.blocks import ROOT

_OUT, _ERR = ".printed", ".said"
# By the words in a block that need them; importing none of them starts a thread.
_MODULES = {
    "coordination": "strongroom.coordination",
    "strongroom.testing": "strongroom.testing.server",
    "azure.storage.blob": "azure.storage.blob",
}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a block did: its exit code and its output."""

    code: int
    out: str
    err: str


class PythonRuns:
    """The process that forks; use it in a `with` statement."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.pages.python_runs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def run(self, script: Path, variables: Mapping[str, str]) -> Ran:
        """Run a script in its folder, with further environment variables."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps([str(script), dict(variables)]) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        out, err = (script.parent / name for name in (_OUT, _ERR))
        return Ran(code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))

    def __enter__(self) -> PythonRuns:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()


def _fork(script: Path, variables: Mapping[str, str]) -> int:
    """Run a script in a child of this process; return its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        _become(script, variables)
        runpy.run_path(str(script), run_name="__main__")
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else bool(ended.code)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _become(script: Path, variables: Mapping[str, str]) -> None:
    """Make this process look like one that a reader started in the folder of the script."""
    os.chdir(script.parent)
    os.environ.update(variables)
    sys.path.insert(0, str(script.parent))
    for name, number in ((_OUT, 1), (_ERR, 2)):
        opened = os.open(script.parent / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, number)


def main() -> None:
    """Serve requests until the input ends."""
    for line in sys.stdin:
        script, variables = json.loads(line)
        _import_for(Path(script).read_text(encoding="utf-8"))
        print(_fork(Path(script), variables), flush=True)


def _import_for(code: str) -> None:
    """Import here what a block will import, so that the next one finds it loaded."""
    for word, module in _MODULES.items():
        if word in code:
            importlib.import_module(module)


if __name__ == "__main__":
    main()
