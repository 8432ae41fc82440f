"""Finding the foreign clients that the interop tests drive; a missing one fails with its remedy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

NODE_DIR = Path(__file__).parent / "node"

_INSTALL = {
    "caddy": "install Caddy (Debian: apt install caddy)",
    "curl": "install curl (Debian: apt install curl)",
    "nginx": "install nginx (Debian: apt install nginx-light)",
    "node": "install Node.js 18 or later (Debian: apt install nodejs npm)",
    "npm": "install npm (Debian: apt install npm)",
    "prometheus": "install Prometheus (Debian: apt install prometheus)",
    "promtool": "install Prometheus (Debian: apt install prometheus)",
    "rclone": "install rclone (Debian: apt install rclone)",
    "restic": "install restic (Debian: apt install restic)",
    "smbclient": "install smbclient (Debian: apt install smbclient)",
    "smbtorture": "install Samba's tests (Debian: apt install samba-testsuite)",
}


def require_tool(name: str) -> str:
    """Return the path of the program `name`; fail the test, naming the remedy, if there is none."""
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"The program {name!r} is missing: {_INSTALL[name]}.", pytrace=False)
    return found


def require_node_package(name: str) -> Path:
    """Return the folder in which Node finds the package `name`; fail the test if it is missing."""
    require_tool("node")
    if not (NODE_DIR / "node_modules" / name / "package.json").is_file():
        require_tool("npm")
        pytest.fail(f"The npm package {name!r} is missing: run 'make interop'.", pytrace=False)
    return NODE_DIR
