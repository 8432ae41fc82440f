"""The JavaScript SDK: the steps of each script, compared with the service's answers.

The scripts (node/*.mjs) only report the result of each step; the expected results are here.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from strongroom.account_switches import DEFAULT_SWITCHES, Switches
from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME, Account, development_account
from strongroom.config import ACCOUNTS_FILE_NAME
from strongroom.servers.identities.accounts_file import change_accounts
from strongroom.testing.server import Server
from tests.interop import javascript_steps as right
from tests.interop.conftest import serving
from tests.interop.javascript_appends import APPENDS
from tests.interop.javascript_steps import Outcome, Refusal, Steps
from tests.interop.javascript_tables_queues import QUEUES, TABLES
from tests.interop.javascript_versions import SWITCHES, VERSIONS
from tests.interop.tools import require_node_package, require_tool

_TIMEOUT_S = 60


def run_script(connection_string: str, name: str) -> Steps:
    """Return the result of each step, in order."""
    for package in ("storage-blob", "storage-queue", "data-tables"):
        folder = require_node_package(f"@azure/{package}")
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
    done = subprocess.run(
        [require_tool("node"), str(folder / f"{name}.mjs"), connection_string],
        env=kept,
        capture_output=True,
        timeout=_TIMEOUT_S,
    )
    said = done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0, f"{name}: {said[-3000:]}"
    found: dict[str, Outcome] = {}
    for line in done.stdout.decode().splitlines():
        told = json.loads(line)
        assert told["step"] not in found, told
        found[told["step"]] = Refusal(*told["refused"]) if "refused" in told else told["value"]
    return found


@dataclass(frozen=True)
class Script:
    """A script, the expected results of its steps, and the switches of its account."""

    name: str
    steps: Steps
    switches: Switches = DEFAULT_SWITCHES

    @property
    def account(self) -> str:
        """The name of the account that only this script uses."""
        return f"scriptof{self.name}"


SCRIPTS = (
    Script("containers", right.CONTAINERS),
    Script("blobs", right.BLOBS),
    Script("appends", APPENDS),
    Script("conditions", right.CONDITIONS),
    Script("leases", right.LEASES),
    Script("copies", right.COPIES),
    Script("listing", right.LISTING),
    Script("batches", right.BATCHES),
    Script("signatures", right.SIGNATURES),
    Script("account", right.ACCOUNT),
    Script("tables", TABLES),
    Script("queues", QUEUES),
    Script("versions", VERSIONS, SWITCHES),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all scripts. Each script has an account of its own."""
    keys = development_account().keys
    accounts = tuple(Account(script.account, keys, script.switches) for script in SCRIPTS)
    with serving(tmp_path_factory.mktemp("javascript") / "data") as running:
        assert running.data is not None
        change_accounts(running.data / ACCOUNTS_FILE_NAME, lambda before: accounts)
        yield running


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_steps(server: Server, script: Script) -> None:
    connection_string = server.connection_string.replace(DEVELOPMENT_ACCOUNT_NAME, script.account)
    found = run_script(connection_string, script.name)
    for step, outcome in script.steps.items():
        assert step in found, f"{script.name} does not take the step {step!r}"
        assert found[step] == outcome, f"{script.name}: {step}"
    assert list(found) == list(script.steps)


def test_every_script_is_run() -> None:
    folder = require_node_package("@azure/storage-blob")
    assert {path.stem for path in folder.glob("*.mjs")} - {"steps"} == {
        script.name for script in SCRIPTS
    }
