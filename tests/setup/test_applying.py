"""What a setup makes, leaves, compares and sets, as clients find it afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import AccessPolicy, BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from strongroom.app import App
from strongroom.auth.accounts import Account
from strongroom.auth.request import Service
from strongroom.clock import SystemClock
from strongroom.config import AccountSources, ConfigError, Settings, SetupSource
from strongroom.engines.base import Unavailable
from strongroom.servers.identities.accounts_file import change_accounts, read_accounts
from strongroom.services.core.account import properties
from strongroom.setup import run as setup_run
from strongroom.setup.document import SetupError
from strongroom.setup.requests import OwnRequests
from strongroom.testing import InProcessServer
from tests.over_postgres import keeps_in_postgres
from tests.setup.applied import SetUp

ALL = """
    [[accounts.containers]]
    name = "pictures"
    access = "blob"
    metadata = { team = "web" }
    policies = [{ id = "partners", expiry = 2036-01-01T00:00:00Z, permission = "rl" }]

    [[accounts.queues]]
    name = "tasks"
    policies = [{ id = "workers", permission = "rp" }]

    [[accounts.tables]]
    name = "Orders"
    policies = [{ id = "readers", permission = "r" }]

    [[accounts.shares]]
    name = "docs"
    quota_gib = 7
    policies = [{ id = "staff", permission = "rl" }]

    [[accounts.cors]]
    services = ["blob", "queue"]
    origins = ["http://localhost:3000"]
    methods = ["GET"]
    max_age_s = 60

    [[accounts.roles]]
    role = "Storage Blob Data Reader"
    principal = "11111111-2222"
    container = "pictures"
"""
CREATED = [
    "created  account devstoreaccount1",
    "created  role Storage Blob Data Reader of 11111111-2222 in devstoreaccount1/pictures",
    "created  CORS rules of the blob service of devstoreaccount1",
    "created  CORS rules of the queue service of devstoreaccount1",
    "created  container devstoreaccount1/pictures",
    "created  policy partners of container devstoreaccount1/pictures",
    "created  queue devstoreaccount1/tasks",
    "created  policy workers of queue devstoreaccount1/tasks",
    "created  table devstoreaccount1/Orders",
    "created  policy readers of table devstoreaccount1/Orders",
    "created  share devstoreaccount1/docs",
    "created  policy staff of share devstoreaccount1/docs",
]


@contextmanager
def serving(setup: SetUp) -> Iterator[str]:
    """Serve the data directory. Yield the connection string."""
    with InProcessServer.start(data=setup.data, test_clock=False) as server:
        yield server.connection_string


def check_all(connection: str) -> None:
    """Check that everything of ALL is there."""
    blobs = BlobServiceClient.from_connection_string(connection)
    pictures = blobs.get_container_client("pictures")
    found = pictures.get_container_access_policy()
    assert found["public_access"] == "blob"
    assert [one.id for one in found["signed_identifiers"]] == ["partners"]
    assert found["signed_identifiers"][0].access_policy.expiry.startswith("2036-01-01T00:00:00")
    assert pictures.get_container_properties().metadata == {"team": "web"}
    (rule,) = blobs.get_service_properties()["cors"]
    assert rule.allowed_origins == "http://localhost:3000"
    queue = QueueServiceClient.from_connection_string(connection).get_queue_client("tasks")
    assert list(queue.get_queue_access_policy()) == ["workers"]
    table = TableServiceClient.from_connection_string(connection).get_table_client("Orders")
    assert list(table.get_table_access_policy()) == ["readers"]
    share = ShareServiceClient.from_connection_string(connection).get_share_client("docs")
    assert share.get_share_properties().quota == 7
    assert [one.id for one in share.get_share_access_policy()["signed_identifiers"]] == ["staff"]


def test_everything_is_made_once(setup: SetUp) -> None:
    setup.write(ALL)
    assert setup.apply() == CREATED
    with serving(setup) as connection:
        check_all(connection)
    assert setup.apply() == []
    assert "left     account devstoreaccount1: it keeps its keys" in setup.lines
    assert "left     container devstoreaccount1/pictures" in setup.lines
    assert setup.apply(overwrites=True) == []


@pytest.mark.parametrize("requests", range(1, 12))
def test_a_start_that_is_killed_half_way_is_completed_by_the_next(
    requests: int, setup: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends after so many requests; each of them is whole."""
    setup.write(ALL)
    ask, left = OwnRequests.ask, requests

    class Killed(Exception):
        pass

    async def counted(self: OwnRequests, asked: Any) -> Any:
        nonlocal left
        if not left:
            raise Killed
        left -= 1
        return await ask(self, asked)

    with monkeypatch.context() as patched:
        patched.setattr(OwnRequests, "ask", counted)
        try:
            setup.apply()
        except Killed:
            assert requests < 10
        else:
            assert requests >= 10
    setup.apply()
    with serving(setup) as connection:
        check_all(connection)


def test_what_exists_is_left_as_it_is(setup: SetUp) -> None:
    setup.write(ALL)
    setup.apply()
    with serving(setup) as connection:
        service = BlobServiceClient.from_connection_string(connection)
        pictures = service.get_container_client("pictures")
        pictures.set_container_access_policy({"own": AccessPolicy()})
        pictures.set_container_metadata({"team": "ours"})
        pictures.upload_blob("mine", b"bytes")
        service.set_service_properties(cors=[])
    where = "container devstoreaccount1/pictures"
    rules = "CORS rules of the blob service of devstoreaccount1"
    hint = "; --setup-overwrite sets it"
    assert setup.apply() == [
        f"created  {rules}",
        f"differs  {where}: metadata is {{'team': 'ours'}}, the file says {{'team': 'web'}}",
        f"differs  {where}: access is private, the file says blob{hint}",
        f"created  policy partners of {where}",
        f"differs  policy own of {where} is not in the file{hint}",
    ]
    with serving(setup) as connection:
        pictures = BlobServiceClient.from_connection_string(connection).get_container_client(
            "pictures"
        )
        found = pictures.get_container_access_policy()
        assert found["public_access"] is None
        assert {one.id for one in found["signed_identifiers"]} == {"own", "partners"}
        assert pictures.download_blob("mine").readall() == b"bytes"
        assert pictures.get_container_properties().metadata == {"team": "ours"}


def test_overwriting_sets_access_policies_cors_and_roles_but_no_bytes_and_no_keys(
    setup: SetUp,
) -> None:
    setup.write(ALL)
    setup.apply()
    own = Account("devstoreaccount1", (b"another key",))
    with serving(setup) as connection:
        service = BlobServiceClient.from_connection_string(connection)
        service.get_container_client("pictures").upload_blob("mine", b"bytes")
    setup.write(
        ALL.replace('"blob"\n', '"container"\n')
        .replace('"partners"', '"others"')
        .replace("max_age_s = 60", "max_age_s = 5")
        .replace("11111111", "99999999")
    )
    change_accounts(setup.data / "accounts.json", lambda before: (own,))
    where = "container devstoreaccount1/pictures"
    role = "role Storage Blob Data Reader of {}-2222 in devstoreaccount1/pictures"
    assert setup.apply(overwrites=True) == [
        f"created  {role.format(99999999)}",
        f"set      {role.format(11111111)} is taken back, since it is not in the file",
        "set      CORS rules of the blob service of devstoreaccount1",
        "set      CORS rules of the queue service of devstoreaccount1",
        f"set      {where}: access is container",
        f"set      {where}: its policies are others",
    ]
    assert read_accounts(setup.data / "accounts.json") == (own,)
    roles = json.loads((setup.data / "roles.json").read_text())["assignments"]
    assert [one["principal"] for one in roles] == ["99999999-2222"]
    assert setup.apply(overwrites=True) == []


def test_what_the_file_does_not_speak_of_stays_when_overwriting(setup: SetUp) -> None:
    setup.write(ALL)
    setup.apply()
    setup.write('[[accounts.containers]]\nname = "pictures"\n')
    assert setup.apply(overwrites=True) == []
    with serving(setup) as connection:
        check_all(connection)
    setup.write(
        'cors = []\nroles = []\n[[accounts.containers]]\nname = "pictures"\npolicies = []\n'
    )
    changed = setup.apply(overwrites=True)
    assert "set      container devstoreaccount1/pictures: its policies are none" in changed
    assert "set      CORS rules of the queue service of devstoreaccount1" in changed
    assert json.loads((setup.data / "roles.json").read_text())["assignments"] == []


def test_a_sixth_policy_is_not_made(setup: SetUp) -> None:
    five = ", ".join(f'{{ id = "p{number}" }}' for number in range(5))
    setup.write(f'[[accounts.queues]]\nname = "tasks"\npolicies = [{five}]\n')
    setup.apply()
    setup.write('[[accounts.queues]]\nname = "tasks"\npolicies = [{ id = "sixth" }]\n')
    first = setup.apply()[0]
    assert first.startswith("differs  policy sixth of queue devstoreaccount1/tasks is missing")


def test_accounts_get_keys_from_the_environment_and_from_files(
    setup: SetUp, tmp_path: Path
) -> None:
    (tmp_path / "shop.key").write_text("c2hvcA==\n")
    (tmp_path / "shop.key").chmod(0o600)
    setup.write(
        """
        [[accounts]]
        name = "shop"
        keys = ["file:shop.key", "env:SHOP_KEY"]

        [[accounts.queues]]
        name = "tasks"
        """
    )
    made = setup.apply(SHOP_KEY="c2Vjb25k")
    assert made[:2] == ["created  account devstoreaccount1", "created  account shop"]
    path = setup.data / "accounts.json"
    found = {one.name: one.keys for one in read_accounts(path)}
    assert found["shop"] == (b"shop", b"second")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # Its keys are not read any more, and stay.
    (tmp_path / "shop.key").unlink()
    assert setup.apply() == []
    assert {one.name: one.keys for one in read_accounts(path)} == found


def test_a_server_in_memory_has_the_accounts_and_roles_of_its_setup(setup: SetUp) -> None:
    setup.write(ALL + '\n[[accounts]]\nname = "shop"\nkeys = ["a2V5"]\n')
    settings = Settings(
        data=None,
        blob_port=0,
        queue_port=0,
        table_port=0,
        file_port=0,
        setup=SetupSource(setup.file),
    )
    server = InProcessServer(settings)
    try:
        check_all(server.connection_string)
        assert {one.name for one in server._app.accounts.all()} == {"devstoreaccount1", "shop"}
        file = server._app.settings.roles.file
        # A store in a database keeps roles itself.
        assert (file is not None and file.exists()) != keeps_in_postgres()
    finally:
        server.stop()
    assert file is None or not file.exists()


def test_nobody_reaches_the_server_before_the_setup_is_complete(
    setup: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup.write(ALL)
    listening: list[bool] = []
    apply = setup_run.apply
    app = App(setup.settings(), SystemClock(), lambda line: listening.append(bool(app.ports)))

    async def watched(*given: Any) -> None:
        await apply(*given)
        rules = (await properties(app.services, Service.BLOB, "devstoreaccount1")).cors
        listening.append(not rules)

    monkeypatch.setattr(setup_run, "apply", watched)

    async def run() -> None:
        await app.start()
        assert app.ports
        await app.stop()

    asyncio.run(run())
    assert len(listening) == len(CREATED) + 1
    assert not any(listening)


def test_a_setup_that_fails_leaves_no_server(setup: SetUp) -> None:
    setup.write('[[accounts]]\nname = "shop"\nkeys = ["not base64!"]\n')
    with pytest.raises(SetupError, match=r"setup\.toml, line 4: accounts\[1\]: .*not base64"):
        setup.apply()
    assert not setup.data.exists()


def test_the_known_key_is_not_served_to_other_machines(setup: SetUp) -> None:
    setup.write("")
    file = setup.data / "accounts.json"
    change_accounts(file, lambda before: (Account("shop", (b"own",)),))
    before = file.read_bytes()
    settings = Settings(
        data=setup.data,
        host="0.0.0.0",
        accounts=AccountSources(file=file),
        setup=SetupSource(setup.file),
    )
    with pytest.raises(ConfigError, match="development key"):
        asyncio.run(App(settings, SystemClock()).set_up())
    assert file.read_bytes() == before


SAMPLES = """
    [[accounts.containers]]
    name = "samples"
    folder = "files"
"""


def test_sample_blobs_are_uploaded_once_and_never_written_again(
    setup: SetUp, tmp_path: Path
) -> None:
    files = tmp_path / "files"
    (files / "deep" / "er").mkdir(parents=True)
    (files / "page.html").write_text("<p>")
    (files / "deep" / "er" / "a b.txt").write_text("text")
    (files / "data.unknown").write_bytes(os.urandom(300_000))
    (files / "big.tar.gz").write_bytes(b"")
    setup.write(SAMPLES)
    names = ["big.tar.gz", "data.unknown", "page.html", "deep/er/a b.txt"]
    made = setup.apply()
    assert made[2:] == [f"created  blob devstoreaccount1/samples/{name}" for name in names]
    with serving(setup) as connection:
        samples = BlobServiceClient.from_connection_string(connection).get_container_client(
            "samples"
        )
        types = {one.name: one.content_settings.content_type for one in samples.list_blobs()}
        assert types == {
            "big.tar.gz": "application/gzip",
            "data.unknown": "application/octet-stream",
            "deep/er/a b.txt": "text/plain",
            "page.html": "text/html",
        }
        whole = (files / "data.unknown").read_bytes()
        assert samples.download_blob("data.unknown").readall() == whole
        samples.upload_blob("page.html", b"our own", overwrite=True)
        samples.delete_blob("big.tar.gz")
    (files / "deep" / "er" / "a b.txt").write_text("TEXT")
    where = "blob devstoreaccount1/samples"
    expected = [
        f"created  {where}/big.tar.gz",
        f"differs  {where}/page.html: the file has other bytes",
        f"differs  {where}/deep/er/a b.txt: the file has other bytes",
    ]
    assert setup.apply(overwrites=True) == expected
    with serving(setup) as connection:
        service = BlobServiceClient.from_connection_string(connection)
        samples = service.get_container_client("samples")
        assert samples.download_blob("page.html").readall() == b"our own"
        assert samples.download_blob("deep/er/a b.txt").readall() == b"text"


def test_links_out_of_the_folder_are_not_followed(setup: SetUp, tmp_path: Path) -> None:
    files = tmp_path / "files"
    (files / "sub").mkdir(parents=True)
    (files / "own.txt").write_text("own")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("secret")
    (files / "inside").symlink_to("own.txt")
    (files / "leak").symlink_to(tmp_path / "secret")
    (files / "sub" / "up").symlink_to("../../secret")
    (files / "folder").symlink_to(tmp_path / "outside")
    (files / "broken").symlink_to("nowhere")
    os.mkfifo(files / "pipe")
    setup.write(SAMPLES)
    made = setup.apply()
    uploaded = [line for line in made if line.startswith("created  blob")]
    where = "blob devstoreaccount1/samples"
    assert uploaded == [f"created  {where}/inside", f"created  {where}/own.txt"]
    skipped = {line.split()[2] for line in made if line.startswith("skipped")}
    names = ("leak", "sub/up", "folder", "broken", "pipe")
    assert skipped == {f"devstoreaccount1/samples/{name}:" for name in names}


def test_a_file_whose_name_no_blob_can_have_is_passed_over(setup: SetUp, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for name in (b"own.txt", b"two\nlines", b"red\x1b[31m", b"not utf-8 \xff"):
        (files / os.fsdecode(name)).write_text("text")
    setup.write(SAMPLES)
    made = [line for line in setup.apply() if " blob " in line]
    where = "blob devstoreaccount1/samples"
    assert sorted(made) == [
        f"created  {where}/own.txt",
        rf"skipped  {where}/not utf-8 \udcff: no blob can have this name",
        rf"skipped  {where}/red\x1b[31m: no blob can have this name",
        rf"skipped  {where}/two\nlines: no blob can have this name",
    ]


def test_an_upload_that_another_one_wins_is_left(
    setup: SetUp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each upload says If-None-Match: *, so even a look that comes too early overwrites nothing."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a").write_text("first")
    setup.write(SAMPLES)
    setup.apply()
    (tmp_path / "files" / "a").write_text("second")
    ask, looks = OwnRequests.ask, 0

    async def blind(self: OwnRequests, asked: Any) -> Any:
        nonlocal looks
        answer = await ask(self, asked)
        if asked.method == "HEAD":
            looks += 1
            answer.status = 404 if looks == 1 else answer.status
        return answer

    monkeypatch.setattr(OwnRequests, "ask", blind)
    assert setup.apply() == ["differs  blob devstoreaccount1/samples/a: the file has other bytes"]
    monkeypatch.undo()
    with serving(setup) as connection:
        service = BlobServiceClient.from_connection_string(connection)
        with pytest.raises(HttpResponseError):
            service.get_blob_client("samples", "b").download_blob()
        assert service.get_blob_client("samples", "a").download_blob().readall() == b"first"


def test_a_store_that_cannot_serve_ends_the_start_with_a_text(
    setup: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup.write(ALL)

    async def broken(*given: Any) -> None:
        raise Unavailable("the disk is gone")

    monkeypatch.setattr(setup_run, "apply", broken)
    with pytest.raises(SetupError, match="cannot be completed: the disk is gone"):
        setup.apply()


def test_a_request_that_is_refused_ends_the_start_with_its_error(setup: SetUp) -> None:
    """Somebody has a lease on the share, so its policies cannot be changed."""
    share = '[[accounts.shares]]\nname = "docs"\n'
    setup.write(share)
    setup.apply()
    with serving(setup) as connection:
        ShareServiceClient.from_connection_string(connection).get_share_client(
            "docs"
        ).acquire_lease()
    setup.write(share + 'policies = [{ id = "staff" }]\n')
    with pytest.raises(SetupError, match=r"file service, devstoreaccount1/docs: .* 412 LeaseId"):
        setup.apply()
