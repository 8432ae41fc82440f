"""Frames of one connection begin in the order of their arrival, decrypted in a thread or not. Large
answers that are ready together are sent in different turns of the loop."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from strongroom.servers.smb.state.settings import ON_LOOP_BYTES_MAX
from strongroom.slices import SliceTurns
from strongroom.wire.smb.commands import Command
from tests.servers.smb.client import connected, listener
from tests.servers.smb.commands import TestCommands, create, file_id_of, of_open, transfer
from tests.servers.smb.test_conversations import run
from tests.services.service_engine import settle

_CREDITS = 2


class _Threads(Executor):
    """Carries out what it is given, one by one, when the test says so."""

    def __init__(self) -> None:
        self.given: list[Callable[[], None]] = []

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        self.given.append(lambda: done.set_result(work(*args, **kwargs)))
        return done


def test_no_frame_overtakes_a_large_one_that_follows_another_large_one() -> None:
    async def conversation() -> None:
        commands = TestCommands()
        server = listener(commands.table())
        client = await connected(server)
        file_id = file_id_of((await client.call(Command.CREATE, create())).body)
        threads = server.shared.threads = _Threads()
        size = ON_LOOP_BYTES_MAX + 1
        write = transfer(file_id, size) + bytes(size)
        for _ in range(2):
            client.send(client.message(Command.WRITE, write, credit_charge=_CREDITS))
        client.send(client.message(Command.FLUSH, of_open(file_id)))
        seen = []
        for _ in range(2):
            await settle()
            seen.append(commands.handled[1:])
            threads.given.pop(0)()
        await settle()
        seen.append(commands.handled[1:])
        assert seen == [[], [Command.WRITE], [Command.WRITE, Command.WRITE, Command.FLUSH]]

    run(conversation())


def test_large_answers_that_are_ready_together_do_not_share_a_turn() -> None:
    async def conversation() -> None:
        server = listener(TestCommands().table())
        client = await connected(server)
        file_id = file_id_of((await client.call(Command.CREATE, create())).body)
        threads = server.shared.threads = _Threads()
        seconds = itertools.count()
        # Every piece of work takes longer than a slice.
        server.shared.services.turns = SliceTurns(lambda: float(next(seconds)))
        count, turn, sent_in = 5, 0, list[int]()
        write = client.transport.write

        def noted(data: bytes) -> None:
            sent_in.append(turn)
            write(data)

        client.transport.write = noted  # type: ignore[method-assign]
        read = transfer(file_id, ON_LOOP_BYTES_MAX + 1)
        for _ in range(count):
            client.send(client.message(Command.READ, read, credit_charge=_CREDITS))
        await settle()
        assert len(threads.given) == count
        for ready in threads.given:
            ready()
        while len(set(sent_in)) < count and turn < 1000:
            turn += 1
            await asyncio.sleep(0)
        assert len(set(sent_in)) == count

    run(conversation())
