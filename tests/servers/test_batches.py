"""What a part of a batch has from the request around it: B-BAT-05."""

from __future__ import annotations

import pytest

from strongroom.servers.batches import with_bearer
from strongroom.wire.core.http import Headers
from strongroom.wire.core.multipart import PartRequest

KEY = ("Authorization", "SharedKey a:AAAA")
TOKEN = ("authorization", "Bearer abc")
URL = "/c/b"
CASES = [
    (TOKEN, URL, (), "Bearer abc"),
    (("Authorization", "bearer abc"), URL, (("x-ms-date", "now"),), "bearer abc"),
    (TOKEN, URL, (KEY,), "SharedKey a:AAAA"),
    (TOKEN, URL, (("AUTHORIZATION", "Bearer own"),), "Bearer own"),
    (TOKEN, f"{URL}?sv=2020-02-10&sig=x", (), None),
    (KEY, URL, (), None),
    (("Authorization", "bearerabc"), URL, (), None),
    (("x-other", "Bearer abc"), URL, (), None),
]


@pytest.mark.parametrize(("whole", "url", "own", "seen"), CASES)
def test_only_a_part_without_credentials_has_the_token_of_the_whole(
    whole: tuple[str, str], url: str, own: tuple[tuple[str, str], ...], seen: str | None
) -> None:
    part = PartRequest("DELETE", url, (*own, ("host", "elsewhere")))
    found = Headers(with_bearer(part, Headers([("Host", "here"), whole])))
    assert (found.get("authorization"), found.get("host")) == (seen, "here")
    assert found.repeats == ()
