"""The page on the console names each endpoint, parameter and field of the read API."""

from __future__ import annotations

import msgspec
import pytest

from strongroom.servers.console.api import opens
from strongroom.servers.console.api.documents import DOCUMENTS
from strongroom.servers.console.api.table import TABLE, Row
from strongroom.servers.console.marks import inner
from tests.pages.blocks import ROOT

PAGE = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "document", [*DOCUMENTS, *opens.DOCUMENTS], ids=lambda document: document.__name__
)
def test_every_field_is_named(document: type[msgspec.Struct]) -> None:
    names = {
        field.encode_name for kind in inner(document) for field in msgspec.structs.fields(kind)
    }
    assert [
        name for name in sorted(names) if f"`{name}`" not in PAGE and f'"{name}"' not in PAGE
    ] == []


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.path)
def test_every_endpoint_is_named(row: Row) -> None:
    shown = f"`{row.method} {row.path.replace('{number}', 'N')}`"
    assert shown in PAGE
