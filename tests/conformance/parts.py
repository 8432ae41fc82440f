"""Which conformance tests run once more over a PostgreSQL in CI, where all of them take too long.

Lives here: the modules. The database is started by tests/over_postgres.py. All of them run over it
in `make proof ARGS=tests/proof/postgres_serving`.

    python -m tests.conformance.parts third COMMIT   # a third of the modules, chosen by the commit
    python -m tests.conformance.parts two-gateways   # one module of each service
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent
_PARTS: Final = 3
TWO_GATEWAYS: Final = (
    "blob/test_put_block_list.py",
    "file/test_file_requests.py",
    "queue/test_queue_waiting.py",
    "table/test_table_entities.py",
)


def third(commit: str) -> list[str]:
    """Return the modules of a commit's part. In three parts each module has its turn."""
    offset = int(commit[:8], 16)
    modules = sorted(str(one.relative_to(_FOLDER)) for one in _FOLDER.rglob("test_*.py"))
    return [one for one in modules if (zlib.crc32(one.encode()) + offset) % _PARTS == 0]


def main(which: str, commit: str = "") -> None:
    """Print the paths of modules."""
    modules = third(commit) if which == "third" else TWO_GATEWAYS
    print(*(f"tests/conformance/{one}" for one in modules))


if __name__ == "__main__":
    main(*sys.argv[1:])
