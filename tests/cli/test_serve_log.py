"""`strongroom serve`: what its log says of logons, starts and stops."""

from __future__ import annotations

import base64
import json
import os
import signal
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_NAME
from strongroom.cli.exits import Exit
from strongroom.testing import Server
from strongroom.testing.ports import HOST
from tests.cli.command import in_process
from tests.cli.test_serve import ask

KEY = base64.b64encode(b"a key that only this test knows").decode()


def test_a_failed_logon_leaves_a_line_with_account_and_address() -> None:
    with Server.start() as server:
        credential = {"account_name": DEVELOPMENT_ACCOUNT_NAME, "account_key": KEY}
        client = BlobServiceClient(f"{server.url}/{DEVELOPMENT_ACCOUNT_NAME}", credential)
        for _ in range(3):
            with pytest.raises(HttpResponseError):
                client.create_container("box")
        ask(server, "/Robert%0A/box?sv=2021-12-02&sr=b&sig=secretsecret")
        server.stop()
        lines = [line for line in server.output().splitlines() if "logon failed" in line]
    assert len(lines) == 2, lines
    assert f"blob service, AuthenticationFailed, account {DEVELOPMENT_ACCOUNT_NAME}" in lines[0]
    assert lines[0].endswith(f"from {HOST}")
    assert "a name that no account has, from" in lines[1]
    assert "secret" not in "".join(lines)


def test_level_info_tells_of_start_accounts_and_stop(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Server.start(data=data, test_clock=False, flags=("--log-level", "info")) as server:
        assert in_process("account", "add", "orders", "--data", data).code == 0
        ask(server, "/orders")
        server.stop()
        output = server.output()
    assert f"ready: {data.resolve()}, on {HOST} (blob {server.port}, queue " in output
    assert "accounts.json has changed, and is used from now on" in output
    assert "SIGTERM: no new connections; requests in flight may finish" in output
    assert "stopped after " in output


@pytest.mark.parametrize("names", ["plain", "off"])
def test_the_access_log_is_opened_anew_on_sighup_and_when_it_was_renamed(
    tmp_path: Path, names: str
) -> None:
    path = tmp_path / "access.log"
    flags = ("--access-log", str(path), "--access-log-names", names)
    with Server.start(flags=flags) as server:
        ask(server, "/one/box/secret-plan")
        os.kill(server.pid, signal.SIGHUP)
        ask(server, "/two/box/secret-plan")
        path.rename(tmp_path / "access.log.1")
        ask(server, "/three/box/secret-plan")
        server.stop()
        assert server.exit_code == 0
    written = [(tmp_path / "access.log.1").read_text(), path.read_text()]
    lines = [json.loads(line) for text in written for line in text.splitlines()]
    keys = [line["properties"].get("objectKey") for line in lines]
    shown = "secret-plan" if names == "plain" else "-"
    assert [key for key in keys if key] == [
        f"/{name}/box/{shown}" for name in ("one", "two", "three")
    ]
    assert json.loads(written[1].splitlines()[0])


def test_flags_of_the_access_log_that_cannot_be_used(tmp_path: Path) -> None:
    log = tmp_path / "missing" / "access.log"
    refused = in_process("serve", "--in-memory", "--port-base", "0", "--access-log", log)
    assert refused.code != 0
    assert "--access-log" in refused.err and "cannot be written" in refused.err
    alone = in_process("serve", "--in-memory", "--access-log-names", "hash")
    assert alone.code != 0
    assert "does nothing without --access-log or --otel" in alone.err


@pytest.mark.parametrize("name", ["accounts.json", "segments/access.log"])
@pytest.mark.parametrize("through_link", [False, True])
def test_a_log_inside_the_data_directory_is_refused_before_it_is_opened(
    name: str, through_link: bool, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    (data / name).parent.mkdir(parents=True)
    (tmp_path / "link").symlink_to(data)
    log = tmp_path / ("link" if through_link else "data") / name
    ran = in_process("serve", "--data", data, "--port-base", "0", "--access-log", log)
    assert ran.code == Exit.SETTINGS
    assert f"the log {log} would lie in the data directory {data}" in ran.err
    assert not log.exists()
