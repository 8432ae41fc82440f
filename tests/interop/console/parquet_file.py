"""A small Parquet file, and what its footer says, for the page's own reader.

    python -m tests.interop.console.parquet_file     writes console/tests/blobs/parquet.json anew

Lives here: the file, written by pyarrow, and what pyarrow says of it. Must not live here: the
reader (console/src/protocol/parquet/).
"""

from __future__ import annotations

import base64
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tests.interop.console.browsers import CONSOLE_SOURCES

FILE = CONSOLE_SOURCES / "tests" / "blobs" / "parquet.json"
_FIELDS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("small", pa.uint16()),
        pa.field("day", pa.date32()),
        pa.field("paid", pa.bool_()),
        pa.field("tags", pa.list_(pa.string())),
    ]
)
_SCHEMA = (
    ("id", 0, "INT64", "required"),
    ("name", 0, "BYTE_ARRAY (STRING)", "optional"),
    ("price", 0, "FIXED_LEN_BYTE_ARRAY[5] (DECIMAL 10,2)", "optional"),
    ("at", 0, "INT64 (TIMESTAMP MICROS UTC)", "optional"),
    ("small", 0, "INT32 (INTEGER 16 unsigned)", "optional"),
    ("day", 0, "INT32 (DATE)", "optional"),
    ("paid", 0, "BOOLEAN", "optional"),
    ("tags", 0, "LIST", "optional"),
    ("list", 1, "", "repeated"),
    ("element", 2, "BYTE_ARRAY (STRING)", "optional"),
)


def orders() -> bytes:
    """Return the file: three rows in two groups, two ways of compression."""
    rows = [
        {
            "id": number,
            "name": name,
            "price": Decimal("9.50") * number,
            "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
            "small": number,
            "day": date(2026, 1, 31),
            "paid": number % 2 == 0,
            "tags": ["new"] * number,
        }
        for number, name in enumerate(("ann", "bob", "eve"), start=1)
    ]
    file = io.BytesIO()
    table = pa.Table.from_pylist(rows, schema=_FIELDS)
    ways = {name: "zstd" if name == "name" else "snappy" for name in _paths()}
    parquet.write_table(table, file, row_group_size=2, compression=ways)
    return file.getvalue()


def expected(file: bytes) -> dict[str, Any]:
    """Return what the page should say of a file, by pyarrow's own reader."""
    found = parquet.ParquetFile(io.BytesIO(file)).metadata
    groups = [
        [found.row_group(at).column(column) for column in range(found.num_columns)]
        for at in range(found.num_row_groups)
    ]
    return {
        "version": int(found.format_version.partition(".")[0]),
        "rows": found.num_rows,
        "createdBy": found.created_by,
        "schema": [
            dict(zip(("name", "depth", "type", "repetition"), one, strict=True)) for one in _SCHEMA
        ],
        "columns": found.num_columns,
        "rowGroups": [
            {
                "rows": found.row_group(at).num_rows,
                "rawBytes": sum(one.total_uncompressed_size for one in columns),
                "storedBytes": sum(one.total_compressed_size for one in columns),
                "codecs": sorted({one.compression for one in columns}),
            }
            for at, columns in enumerate(groups)
        ],
        "codecs": sorted({one.compression for columns in groups for one in columns}),
        "keys": [name.decode() for name in found.metadata or ()],
    }


def content() -> str:
    """Return the content of the file."""
    file = orders()
    whole = {"file": base64.b64encode(file).decode(), "expected": expected(file)}
    return json.dumps(whole, indent=1) + "\n"


def _paths() -> list[str]:
    return [*(name for name in _FIELDS.names if name != "tags"), "tags.list.element"]


if __name__ == "__main__":
    FILE.write_text(content(), encoding="utf-8")
