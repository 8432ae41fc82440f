"""The official SDK for asyncio works with queues: many tasks at once, each message for one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.queue import QueueMessage
from azure.storage.queue.aio import QueueClient, QueueServiceClient

from tests.conformance.client import Client
from tests.conformance.running import Running

Scenario = Callable[[QueueServiceClient, QueueClient], Awaitable[None]]


def play(account: Client, scenario: Scenario) -> None:
    """Run a scenario with a service client and a new queue `tasks`."""

    async def run() -> None:
        key = account.credential.key
        async with QueueServiceClient(account.url, key, retry_total=0) as service:
            await scenario(service, await service.create_queue("tasks"))

    asyncio.run(asyncio.wait_for(run(), 60))


def test_the_life_of_a_message(server: Running, queue_account: Client) -> None:
    """Q-PUT-01, Q-GET-02, Q-UPD-01, Q-DEL-01."""

    async def scenario(service: QueueServiceClient, tasks: QueueClient) -> None:
        await tasks.send_message("one")
        first = await tasks.receive_message(visibility_timeout=40)
        assert first is not None and first.content == "one"
        await asyncio.to_thread(server.advance, 41)
        second = await tasks.receive_message()
        assert second is not None and second.dequeue_count == 2
        with pytest.raises(ResourceNotFoundError):
            await tasks.delete_message(first)
        updated = await tasks.update_message(second, content="two", visibility_timeout=0)
        assert [message.content for message in await tasks.peek_messages()] == ["two"]
        await tasks.delete_message(updated)
        assert (await tasks.get_queue_properties()).approximate_message_count == 0
        await tasks.clear_messages()
        await service.delete_queue("tasks")
        with pytest.raises(HttpResponseError) as gone:
            await tasks.send_message("x")
        assert vars(gone.value)["error_code"] == "QueueNotFound"

    play(queue_account, scenario)


def test_many_tasks_share_the_work(queue_account: Client) -> None:
    """Q-GET-07."""

    async def scenario(service: QueueServiceClient, tasks: QueueClient) -> None:
        await asyncio.gather(*(tasks.send_message(str(number)) for number in range(60)))
        done: list[str] = []

        async def consume() -> None:
            while message := await tasks.receive_message(visibility_timeout=600):
                await handle(message)

        async def handle(message: QueueMessage) -> None:
            assert message.dequeue_count == 1
            done.append(str(message.content))
            await tasks.delete_message(message)

        await asyncio.gather(*(consume() for _ in range(16)))
        assert sorted(done, key=int) == [str(number) for number in range(60)]

    play(queue_account, scenario)
