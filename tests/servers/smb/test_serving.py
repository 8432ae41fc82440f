"""The counts of SMB as metrics: answers, and the resources of clients."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import Iterator

import pytest
from prometheus_client.metrics_core import Metric

from strongroom.servers.smb.state.connections import ConnectionState
from strongroom.servers.smb.state.declarations import SmbElement
from strongroom.servers.smb.state.observing import REQUEST_LOG
from strongroom.servers.smb.state.settings import SmbSettings
from strongroom.servers.smb.transport.serving import SmbMetrics
from strongroom.servers.telemetry import JsonLines, Telemetry, TextLines
from strongroom.services.file.opens.opens import Opens
from strongroom.wire.smb.commands import Command
from strongroom.wire.smb.statuses import STATUS_LOGON_FAILURE
from tests.servers.smb.client import connected, listener
from tests.servers.smb.commands import TestCommands, create
from tests.servers.smb.messages import PLAIN
from tests.servers.smb.test_conversations import run


def _values(metrics: Iterator[Metric]) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in metrics
        for sample in metric.samples
    }


def test_what_was_answered_and_what_is_held_is_counted() -> None:
    async def conversation() -> None:
        server = listener(TestCommands().table())
        metrics = SmbMetrics(server)
        client = await connected(server)
        await client.call(Command.CREATE, create())
        await client.call(Command.CREATE, create(b"fail"))
        found = _values(metrics.collect())
        requests = "strongroom_smb_requests_total"
        assert found[requests, "CREATE", "0x00000000"] == 1
        assert found[requests, "CREATE", "0xC0000022"] == 1
        for held in ("connections", "sessions", "opens"):
            assert found[f"strongroom_smb_{held}",] == 1
        assert found["strongroom_smb_locks",] == 0
        opens = server.shared.services.held.of(Opens)
        opens.counts.asked, opens.counts.acknowledged, opens.counts.timed_out = 5, 3, 1
        opens.counts.locks = 7
        counted = _values(metrics.collect())
        for outcome, count in (("asked", 5), ("acknowledged", 3), ("timed_out", 1)):
            assert counted["strongroom_smb_break_answers_total", outcome] == count
        assert counted["strongroom_smb_locks",] == 7
        assert found["strongroom_smb_received_bytes_total",] > 500
        assert found["strongroom_smb_sent_bytes_total",] > 500
        client.transport.close()
        await client.closed()
        found = _values(metrics.collect())
        for held in ("connections", "sessions", "opens"):
            assert found[f"strongroom_smb_{held}",] == 0

    run(conversation())


def test_requests_and_connections_are_freed_without_the_garbage_collector() -> None:
    """Else each would keep its frame, and each connection its buffer, until a rare pass."""

    def left() -> set[str]:
        kinds = (SmbElement, ConnectionState)
        return {type(one).__name__ for one in gc.get_objects() if isinstance(one, kinds)}

    async def conversation() -> None:
        server = listener(TestCommands().table())
        client = await connected(server)
        await client.call(Command.CREATE, create())
        await client.call(Command.CREATE, create(b"fail"))
        assert left() == {"ConnectionState"}
        client.transport.close()
        await client.closed()
        for _ in range(40):  # the end of the connection is still on the stack
            await asyncio.sleep(0)
        assert left() == set()

    gc.collect()
    gc.disable()
    try:
        run(conversation())
    finally:
        gc.enable()


def test_a_break_is_sent_as_its_session_demands_and_counted() -> None:
    async def conversation() -> None:
        server = listener(TestCommands().table())
        client = await connected(server)
        ((state, session),) = server.shared.sessions.values()
        assert isinstance(state, ConnectionState)
        for of_lease in (False, True):
            state.send_break(session, b"notice", of_lease=of_lease)
            notice = await client.reply()
            assert notice.is_encrypted and notice.body == b"notice"
            assert notice.header.message_id == 2**64 - 1
            assert notice.header.command == Command.OPLOCK_BREAK
            assert notice.header.session_id == (0 if of_lease else session.id)
        client.transport.close()
        await client.closed()
        state.send_break(session, b"notice", of_lease=False)
        assert server.shared.counts.breaks == 2

    run(conversation())


def test_the_exposition_shows_them() -> None:
    telemetry = Telemetry(lambda: 0, lambda: 0)
    telemetry.add(SmbMetrics(listener()))
    text, _ = telemetry.exposition()
    assert b"strongroom_smb_breaks_total 0.0" in text


def test_each_request_writes_one_line_at_level_debug(caplog: pytest.LogCaptureFixture) -> None:
    async def conversation() -> None:
        client = await connected(listener())
        with caplog.at_level(logging.DEBUG, logger=REQUEST_LOG):
            await client.call(Command.ECHO, PLAIN)
        (record,) = caplog.records
        line = TextLines().format(record)
        assert "peer=127.0.0.1:40000 command=ECHO message_id=4 session=" in line
        assert "status=0x00000000" in line
        entry = json.loads(JsonLines().format(record))
        assert (entry["peer"], entry["command"]) == ("127.0.0.1:40000", "ECHO")
        assert (entry["message"], entry["status"]) == ("SMB request", "0x00000000")

    run(conversation())


def test_a_failed_logon_writes_a_line_with_account_and_address(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("strongroom"), "propagate", True)

    async def conversation() -> None:
        client = await connected(listener())
        assert (await client.log_on(key=b"wrong")).status == STATUS_LOGON_FAILURE

    run(conversation())
    (line,) = [one.getMessage() for one in caplog.records if one.name == "strongroom.logons"]
    assert line.startswith("logon failed: SMB, account ")
    assert line.endswith(", from 127.0.0.1")


def test_the_default_sizes_are_those_of_the_documentation() -> None:
    settings = SmbSettings()
    assert settings.io_bytes_max == 1 << 20
    assert settings.requires_encryption
