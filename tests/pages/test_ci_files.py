"""The files of the page on CI are complete: a script that starts a server, and YAML."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

import strongroom
from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY
from strongroom.config import without_settings
from tests.pages.blocks import ROOT, blocks

_TEXT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
_FILES = {block.name: block.code for block in blocks(_TEXT) if block.name}
_SCRIPT = "start-storage.sh"
_YAML = [name for name in _FILES if name != _SCRIPT]
_TIMEOUT_S = 100


def test_the_script_returns_when_the_server_answers(tmp_path: Path) -> None:
    (tmp_path / _SCRIPT).write_text(_FILES[_SCRIPT], encoding="utf-8")
    environment = without_settings(os.environ) | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "STRONGROOM_PORT_BASE": "0",
    }
    subprocess.run(["sh", _SCRIPT], cwd=tmp_path, env=environment, timeout=_TIMEOUT_S, check=True)
    ready = json.loads((tmp_path / "strongroom-ready.json").read_text(encoding="utf-8"))
    try:
        with urlopen(ready["health"], timeout=_TIMEOUT_S) as answer:
            assert answer.status == 200
    finally:
        os.kill(ready["pid"], signal.SIGTERM)


def test_the_script_fails_with_what_the_server_said(tmp_path: Path) -> None:
    script = _FILES[_SCRIPT].replace("seq 300", "seq 1")
    (tmp_path / _SCRIPT).write_text(script, encoding="utf-8")
    (tmp_path / "strongroom").write_text("#!/bin/sh\necho no port\n", encoding="utf-8")
    (tmp_path / "strongroom").chmod(0o700)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", _SCRIPT],
        cwd=tmp_path,
        env={"PATH": path},
        timeout=_TIMEOUT_S,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (1, "no port\n")


@pytest.mark.parametrize("name", _YAML)
def test_a_file_is_yaml_and_names_what_there_is(name: str) -> None:
    code = _FILES[name]
    assert isinstance(yaml.safe_load(code), dict)
    for line in code.splitlines():
        if ".whl" in line:
            assert f"strongroom-{strongroom.__version__}-py3-none-any.whl" in line
        if "registry.example.net/strongroom:" in line:
            assert line.endswith(f":{strongroom.__version__}")
        if "AccountKey=" in line:
            assert f"AccountKey={DEVELOPMENT_ACCOUNT_KEY};" in line
        if "healthcheck" in line and "/" in line:
            assert (ROOT / "deploy" / "image" / "healthcheck.sh").is_file()


def test_the_command_of_compose_is_one_of_azurite() -> None:
    services: dict[str, Any] = yaml.safe_load(_FILES["compose.yaml"])["services"]
    command = services["storage"]["command"]
    table = (ROOT / "docs" / "azurite-command.md").read_text(encoding="utf-8")
    assert command[0] == "azurite"
    flags = [word for word in command if word.startswith("--")]
    assert flags and all(f"`{flag}" in table for flag in flags)
    assert services["tests"]["depends_on"] == {"storage": {"condition": "service_healthy"}}
