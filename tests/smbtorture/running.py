"""Running smbtorture, one test at a time, each within a time limit and on an empty share.

Lives here: the command and its process. Must not live here: the meaning of its output
(outcomes.py).
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

from strongroom.testing.ports import HOST
from tests.smbtorture.names import suite_of
from tests.smbtorture.outcomes import Outcome, Result, read_verdict
from tests.smbtorture.targets import Target

# A holder of an oplock that never answers costs 35 seconds, some tests have three of them.
_LIMIT_S: Final = 240.0
# These suites create many files or write many times, and each answer waits for durability.
_LIMITS_S: Final = {"dir": 1500.0, "compound_find": 1500.0, "credits": 1500.0}
_TRIES: Final = 3


def _program() -> str:
    found = shutil.which("smbtorture")
    if found is None:
        raise FileNotFoundError("smbtorture is missing (Debian: apt install samba-testsuite)")
    return found


def listing() -> str:
    """Return the output of `smbtorture --list`. Raises FileNotFoundError, with the remedy."""
    return subprocess.run([_program(), "--list"], capture_output=True, text=True, check=True).stdout


def run_tests(
    target: Target,
    names: Iterable[str],
    folder: Path,
    *,
    encrypted: bool,
    again: Collection[str] = (),
) -> Iterator[Result]:
    """Run the tests one after the other, and yield each result when it is there.

    Arguments:
        target: the server.
        names: the names of the tests.
        folder: the folder for smbtorture's own files.
        encrypted: whether to force encryption; otherwise the client signs.
        again: the tests that are run up to three times until they pass. smbtorture waits only a
            short time for a server's notices, and a busy machine may need longer.

    Raises FileNotFoundError, with the remedy.
    """
    program = _program()
    login = folder / "login"
    login.touch(mode=0o600)
    login.write_text(f"username={target.user}\npassword={target.password}\n")
    settings = folder / "client.conf"
    settings.write_text("[global]\nclient min protocol = SMB2_02\n")
    protection = "encrypt" if encrypted else "sign"
    options = (
        *("-p", str(target.port), "-s", str(settings), "-A", str(login), "-m", "SMB3", "--seed=1"),
        *(f"--client-protection={protection}", f"--basedir={folder}"),
    )
    for name in names:
        for _ in range(_TRIES if name in again else 1):
            share = f"//{HOST}/{target.empty_share()}"
            result = _run_one(name, [program, share, *options, name], folder)
            if result.outcome is Outcome.PASSED:
                break
        yield result


def _run_one(name: str, command: list[str], folder: Path) -> Result:
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    late = False
    try:
        output, _ = process.communicate(timeout=_LIMITS_S.get(suite_of(name), _LIMIT_S))
    except subprocess.TimeoutExpired:
        late = True
    finally:
        process.kill()
    if late:
        output, _ = process.communicate()
    outcome, text = read_verdict(output.decode("utf-8", "replace"))
    elapsed_s = round(time.monotonic() - started, 1)
    return Result(name, Outcome.LATE if late else outcome, elapsed_s, text)
