"""Every example of the toolkit's manual runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

MANUAL = Path(__file__).parents[2] / "docs" / "coordination"
EXAMPLES = [
    pytest.param(code, id=f"{page.stem} {number}")
    for page in sorted(MANUAL.glob("*.md"))
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    )
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_an_example_runs(code: str, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_page_has_one() -> None:
    assert len(EXAMPLES) >= len(list(MANUAL.glob("*.md")))
