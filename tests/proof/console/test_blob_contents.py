"""What a blob has in it: previews, and two states of it beside each other."""

from __future__ import annotations

import hashlib
import re

import pytest
from playwright.sync_api import expect

from tests.conformance.client import PUT_BLOB
from tests.interop.console import parquet_file
from tests.interop.console.blob_windows import address, new_container
from tests.interop.console.browsers import Console
from tests.interop.console.conftest import Served

MIB = 1024 * 1024
# One pixel.
_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cf"
    "c000000301010018dd8db00000000049454e44ae426082"
)
# By the blob's name: its bytes, and a part of what is shown of them.
_PREVIEWS = {
    "data.json": (b'{"a":[1,{"b":12345678901234567890}]}', '"b": 12345678901234567890'),
    "cut.json": (b'[{"a":1},' + b" " * MIB + b"2]", '"a": 1'),
    "data.jsonl": (b'{"a":1}\n{"a":2}\n', "The first 2 records."),
    "data.csv": (b'name,size\n"Smith, J.",4\n', "Smith, J."),
    "data.parquet": (parquet_file.orders(), "TIMESTAMP MICROS UTC"),
    "broken.parquet": (b"PAR1 and no more of it", "does not end as one"),
    "data.bin": (bytes(range(64)), "00000010"),
}


@pytest.fixture
def container(served: Served) -> str:
    return new_container(served)


def snapshot(served: Served, container: str, body: bytes, owner: str) -> str:
    """Write a blob, and return the time of its snapshot."""
    headers = {**PUT_BLOB, "x-ms-meta-owner": owner}
    served.client.put(f"/{container}/b", headers, body)
    return served.client.put(f"/{container}/b?comp=snapshot").get("x-ms-snapshot") or ""


def lines(*names: str) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()


def test_any_two_states_are_compared_line_by_line(
    console: Console, served: Served, container: str
) -> None:
    same = [f"equal {number}" for number in range(20)]
    first = snapshot(served, container, lines("one", *same), "ann")
    second = snapshot(served, container, lines("two", *same), "bob")
    served.client.put(f"/{container}/b", PUT_BLOB, lines("now", *same, "more"))
    console.sign_in(address(container, "b") + "?tab=versions")
    console.button(f"Compare {first}").click()
    dialog = console.page.get_by_role("dialog")
    expect(dialog.get_by_role("status")).to_contain_text("Their lengths differ")
    text = dialog.get_by_role("table", name="The text, line by line")
    expect(text.get_by_role("row").filter(has_text="removed")).to_have_text(re.compile("one"))
    expect(text.get_by_role("row").filter(has_text="added")).to_have_count(2)
    expect(text).to_contain_text("14 equal lines")
    expect(text).not_to_contain_text("equal 10")
    # Not only with the blob as it is now.
    dialog.get_by_label("After").select_option(label=f"snapshot {second}")
    expect(dialog.get_by_role("status")).to_contain_text("equally long, and their bytes differ")
    expect(text.get_by_role("row").filter(has_text="added")).to_contain_text("two")
    facts = dialog.get_by_role("table", name="What differs in properties and metadata")
    owner = facts.get_by_role("row").filter(has_text="Metadata owner")
    expect(owner.get_by_role("cell", name="ann", exact=True)).to_be_visible()
    expect(dialog.get_by_text("Equal: Size, ")).to_be_visible()
    assert console.serious_findings() == []
    dialog.get_by_label("Before").select_option(label=f"snapshot {second}")
    expect(dialog.get_by_role("status")).to_contain_text("the same bytes")
    dialog.get_by_role("button", name="Close").click()


def test_what_is_no_text_or_large_is_compared_by_length_and_hash(
    console: Console, served: Served, container: str
) -> None:
    first = snapshot(served, container, bytes(MIB) + b"\0", "ann")
    served.client.put(f"/{container}/b", PUT_BLOB, bytes(MIB) + b"\1")
    console.sign_in(address(container, "b") + "?tab=versions")
    console.button(f"Compare {first}").click()
    dialog = console.page.get_by_role("dialog")
    expect(dialog.get_by_role("status")).to_contain_text("equally long, and their bytes differ")
    row = dialog.get_by_role("row").filter(has_text="SHA-256")
    for body in (bytes(MIB) + b"\0", bytes(MIB) + b"\1"):
        expect(row).to_contain_text(hashlib.sha256(body).hexdigest())
    expect(dialog.get_by_role("table", name="The text, line by line")).to_have_count(0)


@pytest.mark.parametrize("name", _PREVIEWS)
def test_previews(console: Console, served: Served, container: str, name: str) -> None:
    body, shown = _PREVIEWS[name]
    served.client.put(f"/{container}/{name}", PUT_BLOB, body)
    console.sign_in(address(container, name))
    expect(console.page.get_by_role("region", name="Preview", exact=True)).to_contain_text(shown)


def test_a_preview_is_shown_as_it_is_stored(
    console: Console, served: Served, container: str
) -> None:
    served.client.put(f"/{container}/data.csv", PUT_BLOB, b'name,size\n"a ""b""",4\n')
    console.sign_in(address(container, "data.csv"))
    preview = console.page.get_by_role("region", name="Preview", exact=True)
    expect(preview.get_by_role("cell", name='a "b"', exact=True)).to_be_visible()
    preview.get_by_role("button", name="As it is stored").click()
    expect(preview.locator("pre")).to_have_text('name,size\n"a ""b""",4\n')


def test_a_parquet_file_is_read_by_its_last_bytes(
    console: Console, served: Served, container: str
) -> None:
    file = parquet_file.orders()
    served.client.put(f"/{container}/orders.parquet", PUT_BLOB, file)
    console.sign_in(address(container, "orders.parquet"))
    preview = console.page.get_by_role("region", name="Preview", exact=True)
    expect(preview.get_by_role("table", name="Row groups").get_by_role("row")).to_have_count(3)
    expect(preview).to_contain_text("SNAPPY, ZSTD")
    footer = int.from_bytes(file[-8:-4], "little")
    asked = [one.headers.get("range") for one in console.sent if "orders.parquet" in one.url]
    assert f"bytes={len(file) - 8}-{len(file) - 1}" in asked
    assert f"bytes={len(file) - 8 - footer}-{len(file) - 9}" in asked
    assert console.serious_findings() == []


def test_an_image_is_shown_whatever_type_is_stored(
    console: Console, served: Served, container: str
) -> None:
    headers = {**PUT_BLOB, "x-ms-blob-content-type": "text/html"}
    served.client.put(f"/{container}/dot", headers, _PNG)
    console.sign_in(address(container, "dot"))
    image = console.page.get_by_role("region", name="Preview", exact=True).get_by_role("img")
    expect(image).to_be_visible()
    assert image.evaluate("(image) => image.naturalWidth") == 1
