"""The data that fuzzed requests address: a container, and blobs with a body."""

from __future__ import annotations

from tests.fuzz.channel import Channel, FuzzRequest

BODY = b"some body"


def stock(channel: Channel, container: str, *blobs: str) -> None:
    """Create the container and its blobs, if possible."""
    target = f"/{channel.credential.account}/{container}"
    channel.ask(FuzzRequest("PUT", f"{target}?restype=container"))
    for blob in blobs:
        channel.ask(
            FuzzRequest("PUT", f"{target}/{blob}", (("x-ms-blob-type", "BlockBlob"),), BODY)
        )
