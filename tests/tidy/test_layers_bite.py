"""The layer contracts refuse an import that points the wrong way.

Each case builds a small package of the same name, with one forbidden import in it, and checks it by
the real contracts of pyproject.toml. `make check` checks the project itself separately.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT

# The contracts name these outright, so that the small package must have them.
PACKAGES = (
    *("semantics", "wire", "auth", "operations", "servers", "services", "store", "engines"),
    "platform",
)

WINGED = ("operations", "services", "store", "semantics", "wire", "errors")
WINGS = ("blob", "queue", "table", "file", "core")

LAYERS = "Layers point one way"
PURE = "Rules, codecs and signatures are pure"
FORBIDDEN = (
    ("semantics/core/lease.py", "from strongroom.services import x", LAYERS),
    ("semantics/core/lease.py", "import strongroom.wire", LAYERS),
    ("wire/core/xml.py", "import strongroom.auth", LAYERS),
    ("errors/core.py", "import strongroom.semantics", LAYERS),
    ("errors/core.py", "import strongroom.errors.leases", "The wings of a layer"),
    ("services/core/places.py", "import strongroom.errors.blob", "What services share"),
    ("services/file/files.py", "import strongroom.errors.blob", "The file wings"),
    ("engines/base.py", "import strongroom.store", LAYERS),
    ("drawer.py", "", LAYERS),
    ("semantics/core/lease.py", "import asyncio", PURE),
    ("auth/sas.py", "import time", PURE),
    ("wire/core/xml.py", "import strongroom.platform", PURE),
    ("platform/files.py", "import strongroom.errors", LAYERS),
    ("engines/base.py", "import strongroom.semantics", "Engines know nothing about Azure"),
    ("engines/postgres/a.py", "import strongroom.engines.embedded", "An engine knows no other"),
    ("store/core/keys.py", "import strongroom.wire", "The store knows records and bytes"),
    ("services/blob/blobs.py", "import strongroom.wire.core.http", "Services never see HTTP"),
    ("services/blob/blobs.py", "import apsw", "SQL stays in the engines"),
    ("services/blob/blobs.py", "import os", "Services and the store read no files"),
    ("store/blob/x.py", "import mmap", "Services and the store read no files"),
    ("operations/core/spec.py", "import strongroom.store", "Operations and servers use neither"),
    ("servers/stray.py", "import strongroom.engines", "Operations and servers use neither"),
    (
        "servers/stray.py",
        "import strongroom.testing",
        "Only the command line uses the test tools",
    ),
    ("coordination/lock.py", "import strongroom.errors", "Coordination is a client"),
    ("coordination/lock.py", "import strongroom.times", "Coordination is a client"),
    ("coordination/lock.py", "import strongroom.cli", "Coordination is a client"),
    ("coordination/store.py", "import strongroom.coordination.client", "The toolkit's layers"),
    ("coordination/stray.py", "", "The toolkit's layers"),
    ("app.py", "import strongroom.coordination", "The server does not use the coordination"),
    ("services/core/a.py", "import strongroom.services.core.b", "No import cycles"),
    ("services/queue/queues.py", "import strongroom.services.blob", "The wings of a layer"),
    ("services/core/runner.py", "import strongroom.services.blob", "The wings of a layer"),
    ("services/stray.py", "", "The wings of a layer"),
    ("services/blob/stray.py", "", "Operations on blobs use states"),
    (
        "services/blob/decisions/a.py",
        "import strongroom.services.blob.states",
        "Operations on blobs use states",
    ),
    ("operations/queue/queue.py", "import strongroom.services.blob", "The queue wings"),
    ("operations/table/table.py", "import strongroom.services.queue", "The table wings"),
    ("operations/blob/blob.py", "import strongroom.services.table", "The blob wings"),
    ("operations/file/file.py", "import strongroom.services.blob", "The file wings"),
    ("services/blob/blobs.py", "import strongroom.services.file", "The wings of a layer"),
    ("semantics/core/lease.py", "import strongroom.semantics.file", "The wings of a layer"),
    ("services/tree/paths.py", "import strongroom.services.file", "The wings of a layer"),
    ("services/tree/paths.py", "import strongroom.store.file", "The tree of names"),
    ("services/core/runner.py", "import strongroom.services.tree", "The wings of a layer"),
    ("operations/core/codec.py", "import strongroom.semantics.blob", "What services share"),
    ("operations/core/fields.py", "import strongroom.services.queue", "What services share"),
    ("services/core/places.py", "import strongroom.store.table", "What services share"),
)


def _build(folder: Path, path: str, text: str) -> None:
    package = folder / "strongroom"
    base = {f"{name}/__init__.py": "" for name in (*PACKAGES, "testing", "coordination", "cli")}
    base |= {f"{layer}/{wing}/__init__.py": "" for layer in WINGED for wing in WINGS}
    files = base | {
        "__init__.py": "",
        "app.py": "",
        "errors/__init__.py": "",
        "errors/leases.py": "",
        "times.py": "",
        "coordination/client.py": "",
        "services/tree/__init__.py": "",
        "store/tree/__init__.py": "",
        "services/blob/states/__init__.py": "",
        "services/blob/decisions/__init__.py": "",
        "wire/core/http.py": "",
        "engines/embedded/__init__.py": "",
        "engines/postgres/__init__.py": "",
        "services/core/b.py": (
            "import strongroom.services.core.a" if path == "services/core/a.py" else ""
        ),
        path: text,
    }
    for name, content in files.items():
        target = package / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")


def _judge(folder: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    options = ["--config", str(ROOT / "pyproject.toml"), "--no-cache", "--no-logo"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [*program, *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_clean_package_is_kept(tmp_path: Path) -> None:
    _build(tmp_path, "services/blob/blobs.py", "import strongroom.semantics, strongroom.store")
    judged = _judge(tmp_path)
    assert judged.returncode == 0, judged.stdout + judged.stderr


@pytest.mark.parametrize(("path", "text", "contract"), FORBIDDEN)
def test_a_wrong_import_is_refused(tmp_path: Path, path: str, text: str, contract: str) -> None:
    _build(tmp_path, path, text)
    judged = _judge(tmp_path)
    assert judged.returncode == 1, judged.stdout + judged.stderr
    broken = [line for line in judged.stdout.splitlines() if line.endswith(" BROKEN")]
    assert any(line.startswith(contract) for line in broken), judged.stdout
