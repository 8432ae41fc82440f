"""What tests of blobs do in a window of the console.

Lives here: containers with names of their own, addresses, the list of blobs. Must not live here:
what is expected (test_blobs.py, test_blob_contents.py).
"""

from __future__ import annotations

import itertools

from playwright.sync_api import Locator

from tests.interop.console.browsers import Console
from tests.interop.console.conftest import KEY, Served

_NUMBERS = itertools.count(1)


def new_container(served: Served) -> str:
    """Make a container, and return its name."""
    name = f"blobs-{next(_NUMBERS)}"
    assert served.client.put(f"/{name}?restype=container").status == 201
    return name


def address(container: str, blob: str = "") -> str:
    return f"/blobs/{KEY.account}/{container}" + (f"/{blob}" if blob else "")


def blobs_table(console: Console) -> Locator:
    return console.page.get_by_role("table", name="Blobs", exact=True)
