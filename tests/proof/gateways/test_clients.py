"""Other people's clients over two gateways, which HAProxy asks in turn: each request switches.

These are the interop tests of clients of Azure Storage, unchanged, and all tests that use the
official SDK for Python. The toolkit's histories and faults are there, too: a kill ends both
gateways, and a pause stops one. Left out are those of interop/ that need a single server:

- SMB (smb_clients, smb_names, smbtorture): a share is served over SMB by one gateway, and the
  balancer is one of HTTP. files.md of client_recipes starts such a server of its own.
- proxies: they have another proxy in front of one server. prometheus starts servers with settings
  of its own, one of them over a PostgreSQL. import_azurite serves a data directory.
- the rest of interop/ asks other stores, and no Strongroom.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.over_postgres import VARIABLE

_TESTS: Final = Path(__file__).parents[2]
_FOREIGN: Final = (
    *("arcticdb", "celery", "client_recipes", "hints_strongroom", "javascript", "object_stores"),
    *("pyarrow", "rclone"),
)
_OF_TOOLKIT: Final = ("coordination_faults", "coordination_histories")
_SDK: Final = re.compile(r"from azure\.(?:storage|data)")
_BESIDE: Final = ("hostile/test_sdk_oddities.py", "coordination/test_azure_store.py")
_WITHOUT: Final = (
    # HAProxy sends names of headers in lower case, and so names of metadata.
    "conformance/sdk/test_sdk_containers.py::test_the_life_of_a_container",
    "conformance/sdk/test_sdk_containers_aio.py::test_the_life_of_a_container",
    # A store in memory is expected to say that it is not durable.
    "coordination/test_azure_store.py::test_a_strongroom_says_what_it_is",
)


def sdk_modules() -> list[str]:
    """The modules of the official SDK for Python."""
    found = sorted((_TESTS / "conformance").rglob("test_*.py"))
    own = [str(one.relative_to(_TESTS)) for one in found if _SDK.search(one.read_text())]
    return [*own, *_BESIDE]


def passed(modules: Sequence[str], *flags: str) -> int:
    """Run tests over two balanced gateways, which must pass. Return how many there are."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=600"]
    command += [str(_TESTS / one) for one in modules]
    command += [*flags, *(f"--deselect=tests/{one}" for one in _WITHOUT)]
    ran = subprocess.run(
        command,
        env=os.environ | {VARIABLE: "balanced"},
        cwd=_TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    print(ran.stdout[-1500:])
    assert ran.returncode == 0, ran.stdout[-10_000:]
    (count,) = re.findall(r"(\d+) passed", ran.stdout)
    return int(count)


@pytest.mark.timeout(3600)
def test_foreign_clients_switch_between_gateways() -> None:
    assert passed([f"interop/test_{one}.py" for one in _FOREIGN]) >= 46


@pytest.mark.timeout(3600)
def test_the_official_sdk_switches_between_gateways() -> None:
    assert passed(sdk_modules()) >= 600


@pytest.mark.timeout(3600)
def test_the_toolkit_switches_between_gateways() -> None:
    modules = [f"interop/test_{one}.py" for one in _OF_TOOLKIT]
    assert passed(modules, "-k", "strongroom") == 4
