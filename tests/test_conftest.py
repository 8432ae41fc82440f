"""The rule that a skip is a failure, tried on a small test run of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")


@pytest.mark.parametrize(
    "text",
    [
        "import pytest\ndef test_it():\n    pytest.skip('no tool')\n",
        "import pytest\n@pytest.mark.skip(reason='no tool')\ndef test_it():\n    pass\n",
        "import pytest\npytest.skip('no tool', allow_module_level=True)\n",
    ],
)
def test_a_skip_fails_and_gives_its_reason(tmp_path: Path, text: str) -> None:
    judged = _run(tmp_path, text)
    assert judged.returncode != 0
    assert "A test may not be skipped. Skipped: no tool" in judged.stdout


def test_a_plain_test_passes(tmp_path: Path) -> None:
    judged = _run(tmp_path, "def test_it():\n    pass\n")
    assert judged.returncode == 0, judged.stdout


def _run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "test_small.py").write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
