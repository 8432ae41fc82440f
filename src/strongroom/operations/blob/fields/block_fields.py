"""The fields of block operations: block ids, and the requested block lists.

Source: "Put Block" and "Get Block List", URI parameters.
"""

from __future__ import annotations

from typing import Final

from strongroom.errors.core import invalid_query
from strongroom.operations.core.fields import Parse, parameter
from strongroom.semantics.blob.blocks import block_id

BLOCK_ID: Final = parameter("block_id", "blockid", lambda _, value: block_id(value), required=True)
_BLOCK_LIST_TYPES: Final = {
    "committed": (True, False),
    "uncommitted": (False, True),
    "all": (True, True),
}


def _block_list_type(index: int) -> Parse:
    def parse(name: str, value: str) -> bool:
        lists = _BLOCK_LIST_TYPES.get(value.lower())
        if lists is None:
            raise invalid_query(name, value, "It must be committed, uncommitted or all.")
        return lists[index]

    return parse


BLOCK_LIST_COMMITTED: Final = parameter(
    "committed", "blocklisttype", _block_list_type(0), default=True
)
BLOCK_LIST_UNCOMMITTED: Final = parameter(
    "uncommitted", "blocklisttype", _block_list_type(1), default=False
)
