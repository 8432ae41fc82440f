"""Every example runs to its end, and prints the promised output."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from strongroom.app import App
from strongroom.clock import SystemClock
from strongroom.config import AccountSources, RolesSource, Settings, SetupSource

# One of them starts a server process and two clients; a busy machine takes its time.
PATIENCE_S = 300
pytestmark = pytest.mark.timeout(PATIENCE_S + 60)
EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name != "steps.py")
STATUSES = {
    "managing_concurrency.py": [
        *(201, 201, 201, 412, 201),
        *(201, 409, 201, 412, 412, 200, 200, 201),
        *(201, 204, 200, 204, 412, 204, 204),
        *(201, 201, 409, 204, 200, 201, 200),
        *(201, 201, 201, 200, 200, 200, 204, 200, 404, 204),
        *(201, 201, 201, 201),
        *(201, 409, 201, 412, 412, 200, 202, 412, 201),
        *(201, 201, 412, 202, 204, 204, 202),
    ],
    "smb_meets_rest.py": [
        *(201, 201, 409, 200),
        *(200, 409, 409, 200, 200, 201),
        *(201, 200, 409, 404),
    ],
    "lease_exclusive_write_shared_read.py": [201, 201, 201, 201, 200, 412, 200],
    "lease_exclusive_write_exclusive_read.py": [
        *(201, 201, 201, 200, 412, 412, 200, 201, 200, 200),
    ],
    "lease_shared_write_exclusive_read.py": [
        *(201, 201, 201, 201, 201, 412, 201, 201, 409, 200, 200, 201),
    ],
}


SAID = {
    # Given no etcd, it tells how to start one; with one it runs in tests/interop.
    "etcd_practicum.py": r"Which etcd\?.*\n\n  etcd --enable-v2=true .*\n  python examples/.*\n",
    "order_numbers.py": r"\d+ orders, no number twice; the highest is \d+\n",
    "release_the_hounds.py": r"50 nodes released, .*\n5 late nodes found it open\n",
    "scheduler.py": r"the (\w+) scheduler leads, fence 1; it is killed\n"
    r"the (?!\1)\w+ scheduler leads, fence \d+\n",
}


def test_every_example_has_its_expected_steps() -> None:
    assert STATUSES.keys() | SAID.keys() == set(SCRIPTS)


def test_the_example_of_a_setup_can_be_applied_twice(tmp_path: Path) -> None:
    """A copy of it: a working copy may be writable by its group, and such a file is refused."""
    shutil.copytree(EXAMPLES / "setup", tmp_path / "setup")
    file = tmp_path / "setup.toml"
    file.write_text((EXAMPLES / "setup.toml").read_text())
    file.chmod(0o600)
    source = SetupSource(file)
    data = tmp_path / "data"
    accounts = AccountSources(file=data / "accounts.json")
    settings = Settings(
        data=data, accounts=accounts, roles=RolesSource(data / "roles.json"), setup=source
    )
    lines: list[str] = []
    for verb in ("created ", "left "):
        lines.clear()
        asyncio.run(App(settings, SystemClock(), lines.append).set_up())
        assert {line[: len(verb)] for line in lines} == {verb}
    assert "left     blob devstoreaccount1/pictures/dot.svg" in lines


def run(script: str) -> str:
    """What an example prints; it must end well."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AZURE_")}
    done = subprocess.run(
        [sys.executable, EXAMPLES / script],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("script", SAID)
def test_an_example_says_what_it_promises(script: str) -> None:
    assert re.fullmatch(SAID[script], run(script))


@pytest.mark.parametrize("script", STATUSES)
def test_an_example_meets_the_codes_it_promises(script: str) -> None:
    steps = [line for line in run(script).splitlines() if line.startswith("  ")]
    met = [int(word) for line in steps for word in line[68:].split()[:1] if word.isdigit()]
    assert met == STATUSES[script]
    if script in shown():
        printed = iter(map(without_etags, steps))
        assert [one for one in shown()[script] if one not in printed] == []


def shown() -> dict[str, list[str]]:
    """The steps that a page shows of an example's output, in order, by script."""
    page = (EXAMPLES.parent / "docs" / "start" / "emulator.md").read_text(encoding="utf-8")
    found = re.findall(r"^\$ \S+ examples/(\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return {
        script: [without_etags(line) for line in lines.splitlines() if line.startswith("  ")]
        for script, lines in found
    }


def without_etags(line: str) -> str:
    """The line without what differs from run to run."""
    return re.sub(r'"0x[0-9A-F]+"', "ETag", line)


def test_a_page_shows_what_an_example_prints() -> None:
    assert len(shown()["managing_concurrency.py"]) > 10
