"""Block lists that would be slow to parse are refused before they are parsed."""

from __future__ import annotations

import pytest

from strongroom import limits
from strongroom.errors import core as errors
from strongroom.errors.core import StorageError
from strongroom.slices import run_to_completion
from strongroom.wire.blob.block_list import read_block_list

_ATTRIBUTES = b"<BlockList " + b"".join(b'a%d=">" ' % n for n in range(200_000)) + b"/>"
_TEXT = b"<BlockList><Latest>" + (b"A" * 5000 + b"\n") * 3000 + b"</Latest></BlockList>"


@pytest.mark.parametrize("document", [_ATTRIBUTES, _TEXT], ids=["attributes", "text"])
def test_a_long_tag_or_text_in_a_large_document_is_refused(document: bytes) -> None:
    """B-LIM-02: a second of parsing would delay all other requests by a second."""
    assert limits.XML_BODY_BYTES_MAX < len(document) < limits.BLOCK_LIST_BODY_BYTES_MAX
    with pytest.raises(StorageError) as refused:
        run_to_completion(read_block_list(document))
    assert refused.value.row is errors.INVALID_XML_DOCUMENT
    assert ("Reason", "A tag or a text is too long.") in refused.value.extras


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_longest_list_is_read(encoding: str) -> None:
    entry = f"<Latest>{'A' * 88}</Latest>\n" + " " * 40
    text = '<?xml version="1.0"?>' + f"<BlockList>{entry * limits.COMMITTED_BLOCKS_MAX}</BlockList>"
    document = text.encode(encoding)
    assert len(run_to_completion(read_block_list(document))) == limits.COMMITTED_BLOCKS_MAX
