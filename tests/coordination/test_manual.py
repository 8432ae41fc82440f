"""The toolkit's manual says what its stores promise, and leads to all of its pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strongroom.coordination import Promises, open_store

MANUAL = Path(__file__).parents[2] / "docs" / "coordination"
# How to open one of each row of the table in stores.md; nothing is sent. The second opens the
# variant that the row's "or" speaks of.
STORES = {
    "memory://NAME": ["memory://"],
    "file:///FOLDER": ["file://{folder}"],
    "azure://ACCOUNT/CONTAINER": [
        "azure://account/container?key=QUJD",
        "azure://account/container?key=QUJD&wait=1",
    ],
    "azure://ACCOUNT/CONTAINER?mode=lease": [
        "azure://account/container?key=QUJD&mode=lease",
        "azure://account/container?key=QUJD&mode=lease&wait=1",
    ],
    "s3://BUCKET/PREFIX": ["s3://bucket/prefix"],
    "etcd://HOST:2379": ["etcd://127.0.0.1:9"],
    "postgres://HOST/DATABASE": ["postgres://127.0.0.1:9/database"],
    "redis://HOST:6379": ["redis://127.0.0.1:9"],
}


def _row(promises: Promises) -> list[str]:
    whole = ", whole" if promises.whole_seconds else ""
    return [
        promises.mutual_exclusion,
        promises.fencing,
        promises.watch,
        "yes" if promises.durable else "no",
        promises.scope,
        f"{promises.ttl_min_s:g} to {promises.ttl_max_s:.0f}{whole}",
    ]


def test_the_table_of_stores_says_what_they_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key")
    page = (MANUAL / "stores.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+://[^`]*)` \| (.*) \|$", page, re.M)
    assert [url for url, _ in rows] == list(STORES)
    for url, cells in rows:
        opened = [open_store(text.format(folder=tmp_path)) for text in STORES[url]]
        told = [_row(store.promises()) for store in opened]
        said = [", or ".join(dict.fromkeys(column)) for column in zip(*told, strict=True)]
        assert cells.split(" | ") == said, url
        for store in opened:
            store.close()


def test_every_page_is_in_the_index_and_every_link_leads_somewhere() -> None:
    index = (MANUAL / "README.md").read_text(encoding="utf-8")
    for page in MANUAL.glob("*.md"):
        if page.name != "README.md":
            assert f"]({page.name})" in index
        for target in re.findall(r"\]\(([\w./-]+)\)", page.read_text(encoding="utf-8")):
            assert (MANUAL / target).exists(), f"{page.name} links to {target}"
