"""Requests with errors in every place: any request gets a valid answer."""

from __future__ import annotations

from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.sas import account_sas
from tests.effort import examples, pairs
from tests.fuzz.channel import Channel, FuzzRequest
from tests.fuzz.requests import (
    HEADERS,
    HOSTILE,
    INJECTION,
    METHODS,
    PARAMETERS,
    Recipe,
    hostile,
    recipes,
    words,
)
from tests.fuzz.stock import stock


def endpoint(channel: Channel) -> str:
    return f"http://127.0.0.1:{channel.port}/{channel.credential.account}"


@examples(1500)
@given(recipe=recipes)
def test_changed_requests(channel: Channel, recipe: Recipe) -> None:
    # Data that an earlier example has deleted or leased is restored if possible.
    stock(channel, recipe.container, recipe.blob)
    token = account_sas(channel.credential, srt="o", sp="r")
    channel.ask(recipe.sent(endpoint(channel), token))


READS = (
    ("/", (("comp", "list"),)),
    ("/fuzz-a", (("restype", "container"), ("comp", "list"))),
    ("/fuzz-a", (("restype", "container"), ("comp", "list"), ("delimiter", "/"))),
    ("/fuzz-a/plain", ()),
    ("/fuzz-a/plain", (("comp", "blocklist"),)),
)
targets = st.text(
    st.one_of(
        st.sampled_from("/?&=%.~:@;,+0aZ$\\\"'<>"),
        st.characters(min_codepoint=33, blacklist_categories=["Cs"]),
    ),
    max_size=40,
).map(lambda text: "/" + text)
headers = st.lists(st.tuples(st.sampled_from(HEADERS), hostile), max_size=5).map(tuple)


@examples(400)
@given(
    sent=st.builds(
        FuzzRequest,
        st.sampled_from(METHODS),
        targets,
        headers.map(lambda pairs: tuple((n, v) for n, v in pairs if n != "x-strongroom-wait")),
        st.binary(max_size=50),
        st.sampled_from(["SharedKey", None]),
        st.booleans(),
    )
)
def test_random_requests(channel: Channel, sent: FuzzRequest) -> None:
    channel.ask(sent)


@examples(300)
@given(name=words, container=words, raw=st.booleans(), method=st.sampled_from(METHODS[:5]))
def test_names(channel: Channel, name: str, container: str, raw: bool, method: str) -> None:
    def part(text: str) -> str:
        return text.replace("\r", "").replace("\n", "") if raw else quote(text, safe="")

    target = f"/{channel.credential.account}/{part(container)}/{part(name)}"
    channel.ask(FuzzRequest(method, target, (("x-ms-blob-type", "BlockBlob"),)))


def test_each_header_with_each_hostile_value(stocked: Channel) -> None:
    """All pairs are sent in order, on a write and on a read that are otherwise valid."""
    base = f"/{stocked.credential.account}/fuzz-a"
    kinds = (
        ("PUT", f"{base}/plain", (("x-ms-blob-type", "BlockBlob"),)),
        ("GET", f"{base}/plain", ()),
    )
    for header, value in pairs(HEADERS, HOSTILE):
        if header == "x-strongroom-wait" and value.strip().isdecimal():
            continue
        text = value.replace("{blob}", f"{endpoint(stocked)}/fuzz-a/blocks")
        for method, target, given_headers in kinds:
            kept = tuple(one for one in given_headers if one[0] != header)
            stocked.ask(FuzzRequest(method, target, (*kept, (header, text))))


def test_each_parameter_with_each_hostile_value(stocked: Channel) -> None:
    """Beside what the request says already, and in its place."""
    base = f"/{stocked.credential.account}"
    reads = [(place, query, name) for place, query in READS for name in PARAMETERS]
    for (place, query, name), value in pairs(reads, (*HOSTILE, INJECTION)):
        kept = [f"{key}={given}" for key, given in query if key != name]
        target = f"{base}{place}?" + "&".join([*kept, f"{name}={quote(value, safe='')}"])
        stocked.ask(FuzzRequest("GET", target))
