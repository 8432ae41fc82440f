"""Every recipe of docs/clients.md, and the README's first lines, run unchanged."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from strongroom.testing.server import Server
from tests.interop.conftest import serving
from tests.interop.tools import require_node_package, require_tool

ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 60
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ENDS = {"python": "py", "javascript": "mjs", "sh": "sh"}
_TOOLS = ("curl", "rclone", "restic")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code, or what the blocks before it print (`text`); `name`: a file, not run."""

    language: str
    name: str
    code: str


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page or section."""
    return [Block(*found) for found in _BLOCK.findall(text)]


def sections() -> dict[str, list[Block]]:
    """The recipes by their headings; sections without a block are none."""
    page = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
    found = {part.partition("\n")[0]: blocks(part) for part in page.split("\n## ")[1:]}
    return {heading: recipe for heading, recipe in found.items() if recipe}


RECIPES = sections()


def on_the_ports_of(server: Server, code: str) -> str:
    """The same code with this server instead of the one on the usual ports."""
    urls = (server.url, server.queue_url, server.table_url, server.file_url)
    for port, url in zip((10000, 10001, 10002, 10003), urls, strict=True):
        code = code.replace(f":{port}", f":{url.rpartition(':')[2]}")
    return code.replace("UseDevelopmentStorage=true", server.connection_string)


def run(block: Block, number: int, folder: Path) -> str:
    """Return the output of a block, which must succeed."""
    script = folder / (block.name or f"block{number}.{_ENDS[block.language]}")
    script.write_text(block.code, encoding="utf-8")
    if block.name:
        return ""
    for tool in _TOOLS:
        if block.language == "sh" and re.search(rf"\b{tool} ", block.code):
            require_tool(tool)
    interpreters = {"python": [sys.executable], "sh": ["bash", "-euo", "pipefail"]}
    program = interpreters.get(block.language) or [require_tool("node")]
    process = subprocess.Popen(
        [*program, script.name],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, said = process.communicate(timeout=_TIMEOUT_S)
    finally:
        # The block's background processes end too.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == 0, said[-3000:]
    return printed


def environment(folder: Path) -> dict[str, str]:
    """No person's own settings, and this project's Python first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", "PYTHONPATH": str(folder)}


def follow(recipe: list[Block], folder: Path, server: Server) -> tuple[str, str]:
    """Return the output of the blocks, and the output that the page promises."""
    printed, said = "", ""
    for number, block in enumerate(recipe):
        code = on_the_ports_of(server, block.code)
        if block.language == "text":
            said += code
        else:
            printed += run(Block(block.language, block.name, code), number, folder)
    return printed, said


def serving_for(recipe: list[Block], data: Path) -> AbstractContextManager[Server]:
    """A server, with a certificate if the recipe has URLs with `https`."""
    if any("https://localhost" in block.code for block in recipe):
        return Server.start(data=data, test_clock=False, flags=("--tls",))
    return serving(data)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where a recipe is followed; it has the packages of Node that `make interop` installs."""
    packages = require_node_package("@azure/storage-blob") / "node_modules"
    (tmp_path / "node_modules").symlink_to(packages)
    yield tmp_path
    (tmp_path / "node_modules").unlink()


@pytest.mark.parametrize("heading", RECIPES)
def test_a_recipe_prints_what_the_page_says(heading: str, folder: Path) -> None:
    recipe = RECIPES[heading]
    with serving_for(recipe, folder / "data") as server:
        printed, said = follow(recipe, folder, server)
    assert printed == said
    assert said


def test_the_readme_does_what_it_shows(folder: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [recipe] = [block for block in blocks(text) if block.language == "python"]
    with serving(folder / "data") as server:
        printed, _ = follow([recipe], folder, server)
    assert printed == "b'first'\n"
