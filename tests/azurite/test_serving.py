"""The installed commands as processes: data, accounts, certificates, tokens, memory, the log."""

from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.blob import BlobServiceClient

from strongroom.auth.accounts import DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME
from strongroom.cli.exits import Exit
from strongroom.testing.ports import HOST
from tests.azurite.certificates import Certificates
from tests.azurite.started import Started, ports

KEY = base64.b64encode(b"another key").decode()


def client(
    port: int, name: str = DEVELOPMENT_ACCOUNT_NAME, key: str = DEVELOPMENT_ACCOUNT_KEY
) -> BlobServiceClient:
    credential = AzureNamedKeyCredential(name, key)
    return BlobServiceClient(f"http://{HOST}:{port}/{name}", credential, retry_total=0)


def accounts_of(value: str) -> list[tuple[str, str]]:
    return [("AZURITE_ACCOUNTS", value)]


def test_what_is_answered_is_there_after_a_kill(commands: Path, tmp_path: Path) -> None:
    found, flags = ports("blob")
    line = ["azurite-blob", *flags, "-l", "data"]
    with Started(commands, line, tmp_path) as started:
        started.wait_for("successfully listens")
        with client(found["blob"]) as blobs:
            blobs.create_container("container").upload_blob("blob", b"content")
    assert (tmp_path / "data" / "strongroom-data").is_dir()
    with Started(commands, line, tmp_path) as started:
        started.wait_for("successfully listens")
        with client(found["blob"]) as blobs:
            assert (
                blobs.get_blob_client("container", "blob").download_blob().readall() == b"content"
            )


def test_the_current_folder_is_the_default_whatever_lies_there(
    commands: Path, tmp_path: Path
) -> None:
    (tmp_path / "package.json").write_text("{}")
    _, flags = ports("blob")
    with Started(commands, ["azurite-blob", *flags], tmp_path) as started:
        started.wait_for("successfully listens")
        assert (tmp_path / "strongroom-data").is_dir()


def test_a_data_directory_gets_no_other_one_inside(commands: Path, tmp_path: Path) -> None:
    _, flags = ports("blob")
    with Started(commands, ["azurite-blob", *flags], tmp_path) as started:
        started.wait_for("successfully listens")
    line = ["azurite-blob", *flags, "-l", "strongroom-data"]
    with Started(commands, line, tmp_path) as started:
        assert started.ended() == Exit.DATA
        assert "is itself a data directory of Strongroom" in started.err
    assert not (tmp_path / "strongroom-data" / "strongroom-data").exists()


def test_accounts_with_names_that_azure_refuses_are_served(commands: Path, tmp_path: Path) -> None:
    found, flags = ports("blob")
    accounts = f"my-account:{KEY};X:abc"
    with Started(
        commands, ["azurite-blob", *flags], tmp_path, environment=accounts_of(accounts)
    ) as started:
        started.wait_for("successfully listens")
        for name, key in (("my-account", KEY), ("X", "abc=")):
            with client(found["blob"], name, key) as blobs:
                blobs.create_container("container").upload_blob("blob", b"content")
                assert [one.name for one in blobs.list_containers()] == ["container"]
        with client(found["blob"]) as blobs, pytest.raises(ClientAuthenticationError):
            blobs.create_container("container")
        assert "AZURITE_ACCOUNTS" not in started.err


def test_accounts_that_cannot_be_read_fall_back_and_are_never_shown(
    commands: Path, tmp_path: Path
) -> None:
    found, flags = ports("blob")
    line = ["azurite-blob", *flags, "--silent", "--debug", "debug.log"]
    with Started(
        commands, line, tmp_path, environment=accounts_of(f"one:{KEY}:{KEY}:{KEY}")
    ) as started:
        started.wait_for("successfully listens")
        with client(found["blob"]) as blobs:
            blobs.create_container("container")
        assert started.stop() == 0
        [line_of_error] = started.err.splitlines()
        assert "WARNING: AZURITE_ACCOUNTS cannot be read: account 'one'" in line_of_error
        printed = started.err + "".join(started.out)
    assert KEY not in printed + (tmp_path / "debug.log").read_text(encoding="utf-8")


def test_data_of_other_accounts_does_not_keep_it_from_starting(
    commands: Path, tmp_path: Path
) -> None:
    found, flags = ports("blob")
    line = ["azurite-blob", *flags]
    with Started(commands, line, tmp_path, environment=accounts_of(f"one:{KEY}")) as started:
        started.wait_for("successfully listens")
        with client(found["blob"], "one", KEY) as blobs:
            blobs.create_container("container")
    with Started(commands, line, tmp_path) as started:
        started.wait_for("successfully listens")
        with client(found["blob"]) as blobs:
            assert list(blobs.list_containers()) == []


def test_memory_is_bounded_by_the_limit(commands: Path, tmp_path: Path) -> None:
    found, flags = ports("blob")
    line = ["azurite-blob", *flags, "--inMemoryPersistence", "--extentMemoryLimit", "0.5"]
    with Started(commands, line, tmp_path) as started:
        started.wait_for("successfully listens")
        with client(found["blob"]) as blobs:
            container = blobs.create_container("container")
            container.upload_blob("small", bytes(100_000))
            with pytest.raises(HttpResponseError):
                container.upload_blob("large", bytes(1_000_000))
            assert container.download_blob("small").readall() == bytes(100_000)
    assert not (tmp_path / "strongroom-data").exists()


@pytest.mark.parametrize("form", ["pem", "pfx"])
def test_a_certificate_of_either_form_is_served(form: str, commands: Path, tmp_path: Path) -> None:
    made = Certificates.make(tmp_path, password="pass word")
    found, flags = ports("blob")
    certificate = ["--cert", made.certificate, "--key", made.key]
    if form == "pfx":
        certificate = ["--cert", made.pfx, "--pwd", "pass word"]
    line = ["azurite", *flags, *certificate, "--queuePort", 0, "--tablePort", 0]
    with Started(commands, line, tmp_path) as started:
        started.wait_for(rf"Blob .* listening at https://{HOST}:{found['blob']}$")
        served = ssl.get_server_certificate((HOST, found["blob"]))
        assert served == made.certificate.read_text(encoding="ascii")
        assert started.stop() == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--cert", "cert.pfx", "--pwd", "other"], "is no PFX file, or --pwd has another password"),
        (["--cert", "cert.pem", "--pwd", "other"], "is no PFX file, or --pwd has another password"),
        (["--cert", "missing.pfx", "--pwd", "x"], "cannot be read"),
        (["--cert", "cert.pem", "--key", "missing.pem"], "cannot be read"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_an_error(
    words: list[str], text: str, commands: Path, tmp_path: Path
) -> None:
    Certificates.make(tmp_path, password="right")
    _, flags = ports("blob")
    with Started(commands, ["azurite-blob", *flags, *words], tmp_path) as started:
        assert started.ended() == Exit.SETTINGS
        assert text in started.err
        assert "right" not in started.err and "/proc" not in started.err


class _AnyToken:
    """A credential with a token that anybody could have written."""

    def get_token(self, *scopes: str, **options: object) -> AccessToken:
        claims = {
            "aud": "https://storage.azure.com",
            "iss": "https://sts.windows.net/any/",
            "nbf": 0,
            "iat": 0,
            "exp": 4_000_000_000,
            "oid": "somebody",
            "tid": "any",
        }
        parts = [{"alg": "RS256", "typ": "JWT"}, claims]
        encoded = [
            base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
            for part in parts
        ]
        return AccessToken(".".join([*encoded, "c2lnbmF0dXJl"]), 4_000_000_000)


def test_tokens_are_accepted_on_an_address_that_others_reach_with_a_warning(
    commands: Path, tmp_path: Path
) -> None:
    made = Certificates.make(tmp_path, password="x")
    found, flags = ports("blob")
    line = ["azurite-blob", *flags, "--blobHost", "0.0.0.0", "--oauth", "basic", "--silent"]
    line += ["--cert", str(made.certificate), "--key", str(made.key), "--inMemoryPersistence"]
    with Started(commands, line, tmp_path) as started:
        started.wait_for("successfully listens on https://0.0.0.0:")
        url = f"https://{HOST}:{found['blob']}/{DEVELOPMENT_ACCOUNT_NAME}"
        with BlobServiceClient(
            url, _AnyToken(), connection_verify=str(made.certificate), retry_total=0
        ) as blobs:
            blobs.create_container("container")
        assert started.stop() == 0
        reached = (
            f"WARNING: anyone who reaches 0.0.0.0:{found['blob']} can read and write everything"
        )
        key, token = started.err.splitlines()
        assert f"{reached} (the key of account devstoreaccount1 is the development key" in key
        assert f"{reached} (--oauth basic accepts tokens that anybody can write)" in token
