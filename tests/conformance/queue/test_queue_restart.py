"""A restart of the server keeps all messages."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.answer import expect
from tests.conformance.messages import count, delete, get, peek, put, update
from tests.conformance.running import Running


def test_messages_outlive_a_restart(tmp_path: Path) -> None:
    """Q-POP-05: receipts, counts, visibility, order, long texts."""
    running = Running(tmp_path / "data")
    client = running.queues()
    expect(client.put("/tasks", {"x-ms-meta-a": "1"}), 201)
    for text in ("one", "x" * 65_000, "three", "four"):
        put(client, "tasks", text)
    (first,) = get(client, "tasks", visibilitytimeout=600)
    later = put(client, "tasks", "later", visibilitytimeout=600)
    client.close()
    running.stop()
    running = Running(tmp_path / "data")
    client = running.queues()
    assert count(client, "tasks") == 5
    assert client.get("/tasks?comp=metadata")["x-ms-meta-a"] == "1"
    assert [message.text for message in peek(client, "tasks")] == ["x" * 65_000, "three", "four"]
    expect(update(client, "tasks", first, seconds=0), 204)
    expect(delete(client, "tasks", later), 204)
    found = get(client, "tasks", numofmessages=32)
    assert [message.text for message in found] == ["x" * 65_000, "three", "four", "one"]
    assert [message.count for message in found] == [1, 1, 1, 2]
    running.advance(31)
    assert len(get(client, "tasks", numofmessages=32)) == 4
    client.close()
    running.stop()
