"""A process that appends to a Delta table: `python -m tests.interop.delta_writer URL NUMBER COUNT`.

Its storage options come as JSON on standard input.
"""

from __future__ import annotations

import json
import sys

import arro3.core as arrow
from deltalake import write_deltalake


def rows(writer: int, step: int) -> arrow.Table:
    """Return one row with the number of its writer."""
    names = [arrow.Array([value], arrow.DataType.int64()) for value in (writer, step)]
    return arrow.Table.from_arrays(names, names=["writer", "step"])


def main() -> None:
    url, writer, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    options = json.load(sys.stdin)
    for step in range(count):
        write_deltalake(url, rows(writer, step), mode="append", storage_options=options)


if __name__ == "__main__":
    main()
