"""Mutated requests: for any bytes, the server sends well-formed responses or ends the
connection."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.servers.http.server import HttpSettings
from tests.servers.loopback import Client, Served, echo, get, put, run, serving

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
SETTINGS = HttpSettings(sweep_interval_s=0.05, linger_idle_timeout_s=0.2)
CHUNKED = get("/c?d=e", "Transfer-Encoding: chunked", "x-Y: z", method="PUT")
CHUNKED += b"5;x=y\r\nhello\r\n3\r\nabc\r\n0\r\nT: u\r\n\r\n"
EXPECTING = put(b"0123456789", "Expect: 100-continue", "Authorization: SharedKey a:b=")
SEEDS = [get("/a%2Fb?c=%20", "x-ms-meta-A: b"), put(b"some body"), CHUNKED, EXPECTING]
INTERESTING = [b"\r", b"\n", b"\r\n", b"\0", b" ", b":", b"\x80", b"0", b"-", b",", b";", b"\t"]

mutations = st.lists(
    st.tuples(
        st.sampled_from(["replace", "insert", "delete", "double"]),
        st.integers(0, 2000),
        st.one_of(st.sampled_from(INTERESTING), st.binary(min_size=1, max_size=3)),
    ),
    min_size=1,
    max_size=5,
)


def mutate(data: bytes, changes: list[tuple[str, int, bytes]]) -> bytes:
    for how, where, what in changes:
        at = where % (len(data) + 1)
        if how == "insert":
            data = data[:at] + what + data[at:]
        elif how == "replace":
            data = data[:at] + what + data[at + len(what) :]
        elif how == "delete":
            data = data[:at] + data[at + len(what) :]
        else:
            data = data[:at] + data[max(0, at - 20) :]
    return data


async def converse(served: Served, sent: list[bytes]) -> int:
    """Send all pieces, read every response, and return their number."""
    client = await served.connect()
    for piece in sent:
        await client.send(piece)
        await asyncio.sleep(0)
    client.end_sending()
    count = 0
    while True:
        status = await _status(client)
        if status is None:
            break
        assert status != 500
        count += 1
    await client.close()
    return count


async def _status(client: Client) -> int | None:
    """Return the status of the next response, which must be well formed; None at the end."""
    try:
        head = await client.interim()
        while head == CONTINUE:
            head = await client.interim()
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        partial = getattr(error, "partial", b"")
        if partial:
            pytest.fail(f"the connection ended inside a head: {partial!r}")
        return None
    answer = await client.answer(head=head)
    assert answer.complete
    return answer.status


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(SEEDS), min_size=1, max_size=3).map(b"".join),
            mutations,
            st.lists(st.integers(0, 2000), max_size=3),
        ),
        min_size=5,
        max_size=10,
    )
)
def test_mutated_requests(
    conversations: list[tuple[bytes, list[tuple[str, int, bytes]], list[int]]],
) -> None:
    async def scenario() -> None:
        async with serving(echo, settings=SETTINGS) as served:
            for seed, changes, cuts in conversations:
                data = mutate(seed, changes)
                edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
                sent = [data[a:b] for a, b in pairwise(edges) if a < b]
                await converse(served, sent)
            # The server still answers valid requests.
            assert await converse(served, SEEDS) == len(SEEDS)
        assert served.server.connection_count == 0

    run(scenario())


@pytest.mark.parametrize("seed", SEEDS)
def test_every_prefix_of_a_request(seed: bytes) -> None:
    async def scenario() -> None:
        async with serving(echo, settings=SETTINGS) as served:
            for end in range(len(seed)):
                assert await converse(served, [seed[:end]]) <= 1
            assert await converse(served, [seed]) == 1

    run(scenario())
