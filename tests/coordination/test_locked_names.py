"""What a lock, a client and a handle say of themselves; names that refer to arguments."""

from __future__ import annotations

import pytest

from strongroom.coordination import BadName, Client, ClientClosed
from strongroom.coordination.stores.memory import MemoryStore


@pytest.fixture
def client() -> Client:
    return Client(MemoryStore(), label="one")


def test_a_loss_is_what_lost_says(client: Client) -> None:
    with client.lock("a") as held:
        assert not held.lost
        held._hold.lose("it was broken")
        assert held.lost and held.lost.is_set()
    with client.lock("a") as held:
        held._hold.lose("it was broken")
        assert held.lost


def test_a_name_that_no_argument_fits_is_refused_when_it_is_written(client: Client) -> None:
    def report(customer: str, part: int = 0) -> str:
        return f"{customer} {part}"

    for name, said in (
        ("r:{nope}", "refers to 'nope', which is no argument of report.*: customer, part"),
        ("r:{}", "refers to ''"),
        ("r:{0}", "refers to '0'"),
        ("r:{", "cannot be read"),
    ):
        with pytest.raises(BadName, match=said):
            client.locked(name)(report)
    assert client.locked("r:{customer.__class__}:{part:03}")(report)("acme", part=7) == "acme 7"


def test_what_is_made_says_what_it_is(client: Client) -> None:
    assert repr(client) == f"<Client 'one' of {client.promises().store}>"
    assert repr(client.aio).startswith("<AioClient 'one' of ")
    assert repr(client.lock("a", ttl=5)) == "<Lock 'a', ttl 5 s, waits for ever>"
    assert repr(client.semaphore("s", 2, wait=3)) == "<Semaphore 's', ttl 15 s, waits 3 s>"
    assert repr(client.ids("o")) == "<Ids 'o', 1000 at a time>"
    client.close()
    assert repr(client).endswith(", closed>")
    with pytest.raises(ClientClosed, match="this client was closed"):
        client.lock("a").acquire()
