"""Where the usage of a share lies, beside what keys.py says of shares and files.

Lives here: these keys. Must not live here: what the records contain (store/file/file_records.py).

| record           | keyspace         | partition | class  | key |
| ---------------- | ---------------- | --------- | ------ | --- |
| usage of a share | `n` + generation | `n`       | hidden | `u` |
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from strongroom.engines.base import Key, Ref
from strongroom.store.core.keys import file_names

USAGE_KEY: Final = Key(True, b"u")
_FEW_REMEMBERED: Final = 64


@lru_cache(_FEW_REMEMBERED)
def share_usage(generation: int) -> Ref:
    """What the files of a share use of its quota."""
    return Ref(file_names(generation), USAGE_KEY)
