"""Every write that a lease guards, by the type of the blob that it changes.

Must not live here: the expected answers (docs/operations/blob/leases.md, B-LOP-07). Delete Blob
is not here, since no other write passes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.conformance import appending, pages
from tests.conformance.answer import Answer
from tests.conformance.blobs import block_list, block_target, put
from tests.conformance.client import PUT_BLOB, Client
from tests.conformance.copying import readable
from tests.conformance.tagging import set_tags

Headers = dict[str, str]
Send = Callable[[Client, str, Headers], Answer]
PAGE = pages.PAGE


@dataclass(frozen=True, slots=True)
class GuardedWrites:
    """The writes of one type of blob.

    Arguments:
        create: creates the blob.
        kinds: (client, target, headers) -> answer, by name. From URL operations read the blob
            `source` of the same container, which has PAGE bytes.
    """

    name: str
    create: Callable[[Client, str], Answer]
    kinds: Mapping[str, Send]

    def __str__(self) -> str:
        return self.name


def _source(client: Client, target: str) -> Headers:
    return {"x-ms-copy-source": readable(client, f"{client.url}/{target.split('/')[1]}/source")}


def _comp(comp: str, **more: str) -> Send:
    given = {name.replace("_", "-"): value for name, value in more.items()}
    return lambda client, target, headers: client.put(f"{target}?comp={comp}", headers | given)


def _block(client: Client, target: str, headers: Headers) -> Answer:
    return client.put(block_target(target, "1"), headers, b"x")


def _block_from_url(client: Client, target: str, headers: Headers) -> Answer:
    return client.put(block_target(target, "1"), headers | _source(client, target))


def _append_from_url(client: Client, target: str, headers: Headers) -> Answer:
    return client.put(f"{target}?comp=appendblock", headers | _source(client, target))


def _page_from_url(client: Client, target: str, headers: Headers) -> Answer:
    ranges = {"x-ms-range": "bytes=0-511", "x-ms-source-range": "bytes=0-511"}
    own = {"x-ms-page-write": "update", **ranges, **_source(client, target)}
    return client.put(f"{target}?comp=page", headers | own)


_COMMON: dict[str, Send] = {
    "Set Blob Metadata": _comp("metadata", x_ms_meta_a="1"),
    "Set Blob Properties": _comp("properties", x_ms_blob_content_type="a/b"),
    "Set Blob Tags": lambda client, target, headers: set_tags(client, target, {"a": "1"}, headers),
}
BLOCKS = GuardedWrites(
    "block blob",
    put,
    {
        **_COMMON,
        "Put Blob": lambda client, target, headers: client.put(target, headers | PUT_BLOB, b"x"),
        "Put Blob From URL": lambda client, target, headers: client.put(
            target, headers | PUT_BLOB | _source(client, target)
        ),
        "Put Block": _block,
        "Put Block From URL": _block_from_url,
        "Put Block List": lambda client, target, headers: client.put(
            f"{target}?comp=blocklist", headers, block_list()
        ),
        "Copy Blob": lambda client, target, headers: client.put(
            target, headers | _source(client, target)
        ),
        "Copy Blob From URL": lambda client, target, headers: client.put(
            target, headers | _source(client, target) | {"x-ms-requires-sync": "true"}
        ),
    },
)
APPENDING = GuardedWrites(
    "append blob",
    appending.create,
    {
        **_COMMON,
        "Put Blob (append)": lambda client, target, headers: client.put(
            target, headers | appending.PUT_APPEND
        ),
        "Append Block": lambda client, target, headers: appending.append(
            client, target, b"x", headers
        ),
        "Append Block From URL": _append_from_url,
        "Append Blob Seal": appending.seal,
    },
)
PAGING = GuardedWrites(
    "page blob",
    lambda client, target: pages.create(client, target, 4 * PAGE),
    {
        **_COMMON,
        "Put Page": lambda client, target, headers: pages.send(
            client, target, 0, b"x" * PAGE, headers
        ),
        "Put Page (clear)": lambda client, target, headers: pages.clear(
            client, target, 0, PAGE, headers
        ),
        "Put Page From URL": _page_from_url,
        "Set Blob Properties (resize)": _comp("properties", x_ms_blob_content_length="1024"),
        "Set Blob Properties (sequence number)": _comp(
            "properties", x_ms_sequence_number_action="increment"
        ),
    },
)
