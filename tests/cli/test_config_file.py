"""`strongroom serve --config FILE`: values of flags in a file, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from strongroom.cli.exits import Exit
from strongroom.cli.flags.config_file import values_of_file
from strongroom.cli.flags.given import given_values
from strongroom.cli.flags.rules import agreed
from strongroom.cli.flags.settings import settings_of
from strongroom.cli.flags.table import FLAGS
from strongroom.config import SelfSigned, Settings, TlsFiles
from tests.cli.command import in_process

WHOLE = """
# All kinds of values.
blob-port = 20001
host = "::1"
metrics-anywhere = true
test-clock = false
own-host = ["One.example.net", "two.example.net"]
rehydration-delay = "30m"
cert = "tls/cert.pem"
key = "/etc/key.pem"
oauth-issuer = "https://issuer.example.net"
oauth-keys = "keys.json"
"""


def written(folder: Path, text: str, mode: int = 0o644) -> Path:
    path = folder / "strongroom.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def settings(
    path: Path, typed: dict[str, Sequence[str]] | None = None, **environment: str
) -> Settings:
    values = given_values(FLAGS, typed or {}, environment, values_of_file(path, FLAGS))
    return settings_of(FLAGS, agreed(FLAGS, values), environment)


def test_a_file_gives_values_of_every_kind(tmp_path: Path) -> None:
    found = settings(written(tmp_path, WHOLE))
    assert (found.blob_port, found.host, found.metrics_anywhere) == (20001, "::1", True)
    assert found.own_hosts == ("one.example.net", "two.example.net")
    assert found.rehydration_s == (1800.0, 1800.0)
    # Relative paths are relative to the file.
    assert found.tls == TlsFiles(tmp_path / "tls/cert.pem", Path("/etc/key.pem"))
    assert found.oauth is not None and found.oauth.keys == str(tmp_path / "keys.json")


def test_the_order_is_flag_environment_file_default(tmp_path: Path) -> None:
    path = written(tmp_path, "blob-port = 1\nqueue-port = 1\ntable-port = 1\n")
    found = settings(
        path,
        {"blob-port": ["3"]},
        STRONGROOM_BLOB_PORT="2",
        STRONGROOM_QUEUE_PORT="2",
    )
    assert (found.blob_port, found.queue_port, found.table_port) == (3, 2, 1)
    assert found.file_port == 10003


def test_a_higher_source_drops_what_it_excludes(tmp_path: Path) -> None:
    path = written(tmp_path, 'data = "kept"\ncert = "c"\nkey = "k"\n')
    found = settings(path, {"in-memory": ["true"]}, STRONGROOM_TLS="1")
    assert (found.data, found.tls) == (None, SelfSigned())
    assert settings(path).data == tmp_path / "kept"
    # Off and on: the flag decides.
    path = written(tmp_path, "smb = true\nsmb-port = 4451\n")
    assert settings(path, {"smb": ["false"]}).smb is None
    found = settings(path)
    assert found.smb is not None and found.smb.port == 4451


def refused(path: Path, *flags: str, **environment: str) -> str:
    ran = in_process("serve", "--in-memory", "--config", path, *flags, **environment)
    assert ran.code == Exit.SETTINGS, ran
    assert len(ran.err.splitlines()) == 1
    return ran.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\nblob_port = 1", "F:2: blob_port is no name of a flag: do you mean blob-port?"),
        ("zzz = 1", "F:1: zzz is no name of a flag; strongroom serve --help lists them"),
        ("[tls]\ncert = 1", "F:1: tls must be true or false"),
        ('blob-port = "1"', "F:1: blob-port must be a number"),
        ("blob-port = true", "F:1: blob-port must be a number"),
        ("blob-port = 70000", "F:1: blob-port '70000': give a port from 0 to 65535"),
        ("# tls\ntls = 1", "F:2: tls must be true or false"),
        ('data = """\ntls = 1\n"""\ntls = 1', "F:4: tls must be true or false"),
        ("host = 1", 'F:1: host must be a text, such as "HOST"'),
        ('own-host = "a"', "F:1: own-host must be an array"),
        ("own-host = [1]", "F:1: own-host must be a text"),
        ('host = ["a"]', "F:1: host must be a text"),
        ('own-host = ["a:1"]', "F:1: own-host 'a:1': give a name"),
        ('account = ["orders:a2V5"]', "F:1: account cannot be given here: keys of accounts"),
        ('config = "other.toml"', "F:1: config cannot be given here"),
        ("tls = x\n", "F is not TOML: Invalid value (at line 1, column 7)"),
        ("tls = " + "[" * 3000, "F is not TOML: maximum recursion depth"),
        ("blob-port = " + "9" * 5000, "F is not TOML: Exceeds the limit"),
        ('tls = true\ncert = "c"\nkey = "k"', "F:1: tls makes a certificate; it does not go with "),
        ("smb-port = 1", "F:1: smb-port does nothing without --smb"),
        ("blob-port = 7\nqueue-port = 7", "F:2: queue-port gives port 7, and so does F:1: blob"),
    ],
)
def test_errors_name_file_line_and_key(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, text)
    assert re.sub(r"\bF\b", str(path), words) in refused(path)


def test_a_key_in_an_error_is_never_a_secret(tmp_path: Path) -> None:
    assert "a2V5" not in refused(written(tmp_path, 'account = ["orders:a2V5"]'))


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o602])
def test_a_file_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path, "", mode)
    assert f"other users may write {path}: chmod go-w {path}" in refused(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refused(tmp_path / "none.toml")
    path = written(tmp_path, "")
    path.write_bytes(b"host = '\xff'")
    assert f"{path} is not TOML: it is not UTF-8 at byte 8" in refused(path)
    path.write_bytes(b"#" * 2**21)
    assert "is it the right file?" in refused(path)


def test_the_environment_names_the_file_and_errors_name_the_environment(tmp_path: Path) -> None:
    path = written(tmp_path, "tls = 1")
    ran = in_process("serve", "--in-memory", STRONGROOM_CONFIG=str(path))
    assert (ran.code, f"{path}:1: tls must be" in ran.err) == (Exit.SETTINGS, True)
    for name, text, why in (
        ("STRONGROOM_BLOB_PORT", "tcp://10.0.0.1:10000", "enableServiceLinks: false"),
        ("STRONGROOM_TLS", "yes", "give true or false"),
        ("STRONGROOM_LOG_LEVEL", "loud", "give one of debug, info, warning, error"),
        ("STRONGROOM_SMB_PORT", "1", "does nothing without --smb"),
    ):
        ran = in_process("serve", "--in-memory", **{name: text})
        assert ran.code == Exit.SETTINGS
        assert ran.err.startswith(f"strongroom: {name} ") and why in ran.err


def test_a_port_base_overrides_ports_of_lower_sources(tmp_path: Path) -> None:
    path = written(tmp_path, "blob-port = 20001\n")
    variables = {"STRONGROOM_PORT_BASE": "20004", "STRONGROOM_ONE_PORT": "20004"}
    words = "STRONGROOM_ONE_PORT gives port 20004, and so does STRONGROOM_PORT_BASE"
    assert words in refused(path, **variables)
    variables["STRONGROOM_ONE_PORT"] = "20001"
    flags = ("--in-memory", "--config", path, "--blob-port", "20001")
    ran = in_process("serve", *flags, **variables)
    assert "STRONGROOM_ONE_PORT gives port 20001, and so does --blob-port" in ran.err
