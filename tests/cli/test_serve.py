"""`strongroom serve`: a real process, from its first line to its exit code."""

from __future__ import annotations

import base64
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient, RehydratePriority

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.cli.exits import Exit
from strongroom.testing import InProcessServer, Server
from strongroom.testing.ports import HOST, free_port, port_flags
from tests.cli.command import TIMEOUT_S, in_process, strongroom

KEY = base64.b64encode(b"a key that only this test knows").decode()


def ask(
    server: Server,
    target: str,
    method: str = "GET",
    body: bytes = b"",
    fields: dict[str, str] | None = None,
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(HOST, server.port, timeout=20)
    try:
        connection.request(method, target, body, fields or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_it_prints_what_a_user_needs_and_the_sdk_works_with_it(tmp_path: Path) -> None:
    with Server.start(data=tmp_path / "data", test_clock=False) as server:
        printed = server.output()
        (text,) = [line for line in printed.splitlines() if "DefaultEndpointsProtocol" in line]
        client = BlobServiceClient.from_connection_string(text.split()[-1])
        container = client.create_container("wiki")
        container.upload_blob("page", b"first")
        assert container.download_blob("page").readall() == b"first"
        assert f"{server.url}/{DEVELOPMENT_ACCOUNT_NAME}" in printed
        assert str(tmp_path / "data") in printed
        assert "durable" in printed
        assert f"{server.url}/.strongroom/health" in printed


def test_one_port_for_all_services_prints_its_connection_string() -> None:
    port = free_port()
    with Server.start(flags=("--one-port", str(port), "--host-suffix", "store.test")) as server:
        printed = server.output()
        (line,) = [line for line in printed.splitlines() if line.strip().startswith("one port")]
        client = BlobServiceClient.from_connection_string(line.split()[-1])
        client.create_container("wiki").upload_blob("page", b"first")
        base = f"http://{HOST}:{port}"
        for service in ("blob", "queue", "table", "file"):
            assert f"{base}/{service}/{DEVELOPMENT_ACCOUNT_NAME};" in line
            assert f"http://{DEVELOPMENT_ACCOUNT_NAME}.store.test:{port}/{service}\n" in printed
        # One store behind both ports.
        other = BlobServiceClient.from_connection_string(server.connection_string)
        assert other.get_blob_client("wiki", "page").download_blob().readall() == b"first"


def test_a_server_in_memory_says_that_nothing_is_kept() -> None:
    with Server.start() as server:
        assert "nothing outlives this process" in server.output()
        status, body = ask(server, "/.strongroom/health")
        assert status == 200
        assert json.loads(body)["durable"] is False


def test_its_own_endpoints_are_reached_by_names_that_were_given() -> None:
    flags = ("--own-host", "Store.Example.net", "--host-suffix", "blob.example.org")
    with Server.start(flags=flags) as server:
        for host, status in (
            ("store.example.net:10000", 200),
            ("orders.blob.example.org", 200),
            ("localhost", 200),
            ("rebound.example.com", 403),
        ):
            assert ask(server, "/.strongroom/metrics", fields={"Host": host})[0] == status
            assert ask(server, "/.strongroom/health", fields={"Host": host})[0] == 200
        page = {"Origin": "http://example.com"}
        step = b'{"advance_s": 1}'
        assert ask(server, "/.strongroom/clock", "POST", step, page)[0] == 403
        assert ask(server, "/.strongroom/clock", "POST", step)[0] == 200


@pytest.mark.parametrize("name", ["", "store:10000", "http://store", "a b", "store/"])
def test_an_own_host_is_a_name(name: str) -> None:
    ran = in_process("serve", "--in-memory", *port_flags(), "--own-host", name)
    assert ran.code == Exit.USAGE
    assert f"--own-host {name!r}: give a name like store.example.net" in ran.err


def test_what_was_answered_survives_kill_and_an_orderly_end(tmp_path: Path) -> None:
    with Server.start(data=tmp_path / "data") as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        container = client.create_container("kept")
        container.upload_blob("killed", b"1")
        server.kill()
        assert server.exit_code == -signal.SIGKILL
        server.restart()
        container.upload_blob("stopped", b"2")
        server.stop()
        assert server.exit_code == Exit.DONE
        server.restart()
        assert container.download_blob("killed").readall() == b"1"
        assert container.download_blob("stopped").readall() == b"2"


def test_an_account_of_ones_own_is_served_and_its_key_never_shown(tmp_path: Path) -> None:
    flags = ("--log-level", "debug")
    variables = {"STRONGROOM_ACCOUNTS": f"orders:{KEY}"}
    with Server.start(data=tmp_path / "data", flags=flags, environment=variables) as server:
        text = f"AccountName=orders;AccountKey={KEY};BlobEndpoint={server.url}/orders;"
        client = BlobServiceClient.from_connection_string(f"DefaultEndpointsProtocol=http;{text}")
        client.create_container("box")
        command_line = Path(f"/proc/{server.pid}/cmdline").read_bytes()
        assert KEY.encode() not in command_line
        printed = server.output()
        assert f"{server.url}/orders" in printed
        assert KEY not in printed
        assert DEVELOPMENT_ACCOUNT_KEY not in printed
        # Where there is an account of one's own, the well-known one is not served.
        development = BlobServiceClient.from_connection_string(
            server.connection_string, retry_total=0
        )
        with pytest.raises(Exception, match="AuthenticationFailed"):
            development.create_container("box")


def test_azurites_variable_counts_when_ours_is_not_set() -> None:
    with Server.start(
        environment={"AZURITE_ACCOUNTS": f"first:{KEY};second:{KEY}:{KEY}"}
    ) as server:
        assert "/first" in server.output()
        assert "/second" in server.output()
    both = {"AZURITE_ACCOUNTS": f"first:{KEY}", "STRONGROOM_ACCOUNTS": f"third:{KEY}"}
    with Server.start(environment=both) as server:
        assert "/third" in server.output()
        assert "/first" not in server.output()


def test_a_request_is_logged_once_at_debug_without_its_signature() -> None:
    flags = ("--log-level", "debug", "--log-format", "json")
    with Server.start(flags=flags) as server:
        ask(server, "/devstoreaccount1/box/b?sv=2021-12-02&sr=b&s%69g=secretsecret&SIG=alsosecret")
        server.stop()
        lines = [json.loads(line) for line in server.output().splitlines() if line[:1] == "{"]
    (line,) = [line for line in lines if "devstoreaccount1" in line.get("target", "")]
    assert line["method"] == "GET"
    assert line["target"].startswith("/devstoreaccount1/box/b?sv=2021-12-02&sr=b&s")
    assert line["status"] in (400, 403)
    assert line["request_id"] != "-"
    assert line["ms"] >= 0
    assert "secret" not in server_text(lines)


def server_text(lines: list[dict[str, object]]) -> str:
    return json.dumps(lines)


def test_it_is_quiet_by_default() -> None:
    with Server.start() as server:
        ask(server, "/devstoreaccount1/box/b")
        server.stop()
        assert "/devstoreaccount1/box/b" not in server.output()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_the_development_key_is_not_served_to_other_machines(host: str) -> None:
    ran = strongroom("serve", "--in-memory", "--host", host, *port_flags())
    assert ran.code == Exit.SETTINGS
    assert "--allow-development-key" in ran.err
    assert "Traceback" not in ran.err


def test_the_development_key_is_known_under_any_name() -> None:
    text = f"mine:{KEY}:{DEVELOPMENT_ACCOUNT_KEY}"
    ran = strongroom("serve", "--in-memory", "--host", "0.0.0.0", STRONGROOM_ACCOUNTS=text)
    assert ran.code == Exit.SETTINGS
    assert "'mine'" in ran.err
    assert DEVELOPMENT_ACCOUNT_KEY not in ran.err


def test_two_servers_never_open_one_directory(tmp_path: Path) -> None:
    with Server.start(data=tmp_path / "data", test_clock=False) as server:
        ran = strongroom("serve", "--data", tmp_path / "data", *port_flags())
        assert ran.code == Exit.DATA
        assert "another server" in ran.err
        assert ask(server, "/.strongroom/health")[0] == 200


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server((HOST, free_port())) as taken:
        port = taken.getsockname()[1]
        ran = strongroom("serve", "--data", tmp_path / "data", *port_flags(port))
    assert ran.code == Exit.LISTEN
    assert str(port) in ran.err
    assert "Traceback" not in ran.err


def test_an_unknown_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with InProcessServer.start(data=data, test_clock=False):
        pass
    (data / "FORMAT").write_text("strongroom 999\n")
    ran = strongroom("serve", "--data", data, *port_flags())
    assert ran.code == Exit.DATA
    assert "strongroom 999" in ran.err
    assert (data / "FORMAT").read_text() == "strongroom 999\n"


def test_a_directory_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("three years of work")
    ran = strongroom("serve", "--data", tmp_path, *port_flags())
    assert ran.code == Exit.DATA
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_records_that_are_no_database_are_refused_with_one_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with InProcessServer.start(data=data, test_clock=False):
        pass
    (data / "records.sqlite").write_bytes(b"not a database, whatever it was before")
    ran = strongroom("serve", "--data", data, *port_flags())
    assert ran.code == Exit.DATA
    assert len(ran.err.splitlines()) == 1


def test_a_test_clock_needs_a_directory_that_was_made_for_it(tmp_path: Path) -> None:
    with InProcessServer.start(data=tmp_path / "real", test_clock=False):
        pass
    ran = strongroom("serve", "--data", tmp_path / "real", "--test-clock", *port_flags())
    assert ran.code == Exit.DATA
    with InProcessServer.start(data=tmp_path / "test", test_clock=True):
        pass
    ran = strongroom("serve", "--data", tmp_path / "test", *port_flags())
    assert ran.code == Exit.DATA
    assert "test clock" in ran.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--account", "a:a2V5"], "3 to 24"),
        (["--account", "orders:not base64"], "base64"),
        (["--account", "orders:a2V5", "--account", "orders:a2V5"], "twice"),
        (["--accounts-file", "no-such-file.json"], "no-such-file.json"),
        (["--cert", "no-cert.pem", "--key", "no-key.pem"], "TLS"),
    ],
)
def test_settings_that_cannot_be_used_end_with_3(flags: list[str], words: str) -> None:
    ran = strongroom("serve", "--in-memory", *port_flags(), *flags)
    assert ran.code == Exit.SETTINGS
    assert words in ran.err
    assert "not base64 " not in ran.err


def test_in_memory_does_not_go_with_a_data_directory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    ran = in_process("serve", "--in-memory", "--data", data, *port_flags())
    assert ran.code == Exit.USAGE
    assert "--in-memory keeps nothing; it does not go with --data" in ran.err
    assert not data.exists()


def test_in_memory_overrules_the_data_directory_of_the_environment(tmp_path: Path) -> None:
    flags = ("--account", "a:a2V5")  # such an account is invalid, which is checked later
    data = tmp_path / "data"
    ran = strongroom("serve", "--in-memory", *port_flags(), *flags, STRONGROOM_DATA=str(data))
    assert ran.code == Exit.SETTINGS
    assert not data.exists()


def test_sigterm_lets_a_request_in_flight_finish(tmp_path: Path) -> None:
    body = b"x" * 1000
    with Server.start(data=tmp_path / "data") as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        sas = _sas(client)
        with socket.create_connection((HOST, server.port), timeout=20) as connection:
            head = (
                f"PUT /devstoreaccount1/box/slow?{sas} HTTP/1.1\r\nHost: {HOST}\r\n"
                "x-ms-blob-type: BlockBlob\r\nx-ms-version: 2021-12-02\r\n"
                f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
            )
            connection.sendall(head.encode())
            assert b"100 Continue" in connection.recv(1000)  # the request is being handled
            stopping = threading.Thread(target=server.stop)
            stopping.start()
            _await_refusal(server.port)
            connection.sendall(body)
            answer = connection.recv(1000)
        stopping.join(TIMEOUT_S)
        assert answer.startswith(b"HTTP/1.1 201")
        assert server.exit_code == Exit.DONE
        server.restart()
        assert client.get_blob_client("box", "slow").download_blob().readall() == body


def _sas(client: BlobServiceClient) -> str:
    from datetime import UTC, datetime, timedelta

    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    client.create_container("box")
    return generate_container_sas(
        DEVELOPMENT_ACCOUNT_NAME,
        "box",
        DEVELOPMENT_ACCOUNT_KEY,
        permission=ContainerSasPermissions(write=True, create=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )


def _await_refusal(port: int) -> None:
    """Return when the server takes no more connections."""
    for _ in range(2000):
        try:
            socket.create_connection((HOST, port), timeout=20).close()
        except ConnectionRefusedError:
            return
        threading.Event().wait(0.005)
    raise AssertionError("the server still takes connections")


def test_sigterm_ends_a_waiting_request_at_once(tmp_path: Path) -> None:
    with Server.start(data=tmp_path / "data") as server:
        client = BlobServiceClient.from_connection_string(server.connection_string)
        client.create_container("box")
        etag = client.get_blob_client("box", "b").upload_blob(b"1")["etag"]
        statuses: list[int] = []

        def wait() -> None:
            waiting = {"x-strongroom-wait": "60", "If-None-Match": etag}
            try:
                client.get_blob_client("box", "b").get_blob_properties(headers=waiting)
            except Exception as error:
                statuses.append(getattr(error, "status_code", 0))

        thread = threading.Thread(target=wait)
        thread.start()
        for _ in range(2000):
            if b"strongroom_waiters 0.0" not in ask(server, "/.strongroom/metrics")[1]:
                break
            threading.Event().wait(0.005)
        server.stop()
        thread.join(TIMEOUT_S)
        assert server.exit_code == Exit.DONE
        assert statuses == [304]


@pytest.mark.parametrize("kept", [True, False])
def test_tls_with_a_certificate_made_by_the_server(tmp_path: Path, kept: bool) -> None:
    data = tmp_path / "data" if kept else None
    with Server.start(data=data, flags=("--tls",)) as server:
        (line,) = [line for line in server.output().splitlines() if " certificate " in line]
        certificate = line.split()[1]
        url = f"https://{HOST}:{server.port}/{DEVELOPMENT_ACCOUNT_NAME}"
        assert url in server.output()
        client = BlobServiceClient(
            url, DEVELOPMENT_ACCOUNT_KEY_CREDENTIAL, connection_verify=certificate
        )
        client.create_container("secret")
        assert [found.name for found in client.list_containers()] == ["secret"]
    assert Path(certificate).exists() == kept


def test_plain_http_is_refused_on_request(tmp_path: Path) -> None:
    one_port = free_port()
    flags = ("--tls", "--require-https", "--one-port", str(one_port))
    with Server.start(data=tmp_path / "data", flags=flags) as server:
        (line,) = [line for line in server.output().splitlines() if " certificate " in line]
        certificate = line.split()[1]
        account = f"{HOST}:{server.port}/{DEVELOPMENT_ACCOUNT_NAME}"
        client = BlobServiceClient(
            f"https://{account}", DEVELOPMENT_ACCOUNT_KEY_CREDENTIAL, connection_verify=certificate
        )
        client.create_container("secret")
        plain = BlobServiceClient(f"http://{account}", DEVELOPMENT_ACCOUNT_KEY_CREDENTIAL)
        with pytest.raises(HttpResponseError) as refused:
            list(plain.list_containers())
        assert refused.value.status_code == 400
        assert "AccountRequiresHttps" in str(refused.value)
        urls = (server.url, server.queue_url, server.table_url, server.file_url)
        for port in (*(int(url.rpartition(":")[2]) for url in urls), one_port):
            connection = http.client.HTTPConnection(HOST, port, timeout=20)
            connection.request("GET", f"/blob/{DEVELOPMENT_ACCOUNT_NAME}?comp=list")
            answer = connection.getresponse()
            assert (answer.status, b"AccountRequiresHttps" in answer.read()) == (400, True), port
            connection.close()
        assert ask(server, "/.strongroom/health")[0] == 200
    ran = in_process("serve", "--require-https", *port_flags())
    assert ran.code == Exit.USAGE
    assert "--require-https does nothing without --tls or --cert or --pfx" in ran.err


DEVELOPMENT_ACCOUNT_KEY_CREDENTIAL = {
    "account_name": DEVELOPMENT_ACCOUNT_NAME,
    "account_key": DEVELOPMENT_ACCOUNT_KEY,
}


def test_a_host_suffix_makes_labels_accounts() -> None:
    with Server.start(flags=("--host-suffix", "storage.test")) as server:
        connection = http.client.HTTPConnection(HOST, server.port, timeout=20)
        for host in ("devstoreaccount1.storage.test", "devstoreaccount1.blob.localhost"):
            connection.request("GET", "/nothing/here?x=1", headers={"Host": host})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 404, host
        connection.close()


FAILING_DISK = """
import errno, os, sys
from strongroom.engines.embedded.disk.files import OsFiles
flag, sync = sys.argv.pop(1), OsFiles.sync
def failing(self, descriptor):
    if os.path.exists(flag):
        raise OSError(errno.EIO, "Input/output error")
    return sync(self, descriptor)
OsFiles.sync = failing
from strongroom.cli import main
main()
"""


def test_a_failing_disk_stops_the_server_with_a_message(tmp_path: Path) -> None:
    flag, port = tmp_path / "broken", free_port()
    command = [sys.executable, "-c", FAILING_DISK, str(flag), "serve", "--test-clock"]
    command += ["--data", str(tmp_path / "data"), *port_flags(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().endswith("is ready.\n")
        url = f"http://{HOST}:{port}/{DEVELOPMENT_ACCOUNT_NAME}"
        client = BlobServiceClient(url, DEVELOPMENT_ACCOUNT_KEY_CREDENTIAL, retry_total=0)
        container = client.create_container("box")
        container.upload_blob("before", b"b" * 100_000)
        flag.touch()
        with pytest.raises(Exception, match=r"InternalError|aborted|refused"):
            container.upload_blob("after", b"a" * 100_000)
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == Exit.STORAGE
        assert "Everything that was answered is kept" in err
    finally:
        process.kill()
        process.wait()
    flag.unlink()
    with Server.start(data=tmp_path / "data", port=port):
        assert container.download_blob("before").readall() == b"b" * 100_000


def test_how_long_rehydrations_take_is_set() -> None:
    """B-TIR-10."""
    statuses = {"Standard": "rehydrate-pending-to-hot", "High": "readable"}
    with Server.start(flags=("--rehydration-delay", "2h", "--rehydration-delay-high", "0s")) as one:
        service = BlobServiceClient.from_connection_string(one.connection_string)
        box = service.create_container("box")
        for priority in (RehydratePriority.STANDARD, RehydratePriority.HIGH):
            blob = box.upload_blob(priority, b"x")
            blob.set_standard_blob_tier("Archive")
            blob.set_standard_blob_tier("Hot", rehydrate_priority=priority)
            pending = blob.get_blob_properties()
            assert (pending.archive_status or "readable") == statuses[priority]


@pytest.mark.parametrize("text", ["", "15", "h", "-1h", "1.5h", "1d", "tomorrow", "1234567s"])
def test_delays_that_there_are_not(text: str) -> None:
    for option in ("--rehydration-delay", "--rehydration-delay-high"):
        ran = in_process("serve", "--in-memory", f"{option}={text}")
        assert ran.code == Exit.USAGE, ran
        assert option in ran.err
