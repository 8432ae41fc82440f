"""The console's page: its build is that of its sources, and its lock file names no addresses."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.tidy.console_build import CONSOLE, LOCK, RECORD, differences, record

_ADDRESS = re.compile(r'"[^"]*"(?=: "(?:https?|git|ssh|file)[:+])|"resolved"')
_DIRECT_MAX = 12


def test_the_build_is_of_these_sources() -> None:
    assert differences() == []


def test_a_change_of_a_source_or_of_the_build_is_seen(tmp_path: Path) -> None:
    console, built = tmp_path / "console", tmp_path / "built"
    (console / "src").mkdir(parents=True)
    (console / "src" / "main.tsx").write_text("1")
    built.mkdir()
    (built / "console.js").write_text("2")
    (built / RECORD).write_text(record(console, built))
    assert differences(console, built) == []
    (console / "src" / "main.tsx").write_text("changed")
    (console / "src" / "more.ts").write_text("new")
    (built / "console.js").write_text("changed")
    assert [one.partition(" has")[0] for one in differences(console, built)] == [
        "sources: src/main.tsx",
        "sources: src/more.ts",
        "built: console.js",
    ]


def test_the_lock_file_has_hashes_and_no_addresses() -> None:
    text = LOCK.read_text(encoding="utf-8")
    assert not _ADDRESS.search(re.sub(r'"funding": (?:\{[^}]*\}|\[[^]]*\]|"[^"]*"),?', "", text))
    packages = json.loads(text)["packages"]
    locked = {path: package for path, package in packages.items() if path}
    assert locked and all("integrity" in one for one in locked.values() if not one.get("inBundle"))


def test_the_lock_file_rule_finds_an_address() -> None:
    assert _ADDRESS.search('"resolved": "https://example.org/a.tgz"')


def test_direct_dependencies_are_few_exact_and_explained() -> None:
    package = json.loads((CONSOLE / "package.json").read_text(encoding="utf-8"))
    direct = {**package["dependencies"], **package["devDependencies"]}
    readme = (CONSOLE / "README.md").read_text(encoding="utf-8")
    assert len(direct) <= _DIRECT_MAX
    assert [name for name, version in direct.items() if not re.fullmatch(r"[0-9.]+", version)] == []
    assert [name for name in direct if f"| {name} |" not in readme] == []
    settings = (CONSOLE / ".npmrc").read_text(encoding="utf-8").splitlines()
    assert {"omit-lockfile-registry-resolved=true", "ignore-scripts=true"} <= set(settings)
