"""What starts before any command in the image: which command, which files, and no rights of root.

Root's part runs where root runs the tests, as CI does. Elsewhere the same test sees that an
ordinary user gets no rights either.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.image import entrypoint
from deploy.image.build import contents
from deploy.image.entrypoint import Refused

_IS_ROOT = os.geteuid() == 0


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands, in place of the image's."""
    for name in ("strongroom", "azurite", "azurite-blob"):
        (tmp_path / name).touch()
    monkeypatch.setattr(entrypoint, "COMMANDS", str(tmp_path))
    monkeypatch.delenv("STRONGROOM_DATA", raising=False)
    return tmp_path


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="strongroom-entry-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_the_user_is_that_of_the_image() -> None:
    assert contents().user == entrypoint.USER


def test_the_arguments_are_executed(commands: Path) -> None:
    entry = "/usr/lib/strongroom/entrypoint.py"
    run = entrypoint._command
    assert run([entry, "azurite", "-l", "/data"]) == [f"{commands}/azurite", "-l", "/data"]
    assert run([entry, "sh", "-c", "true"]) == ["sh", "-c", "true"]
    assert run([entry, "/bin/azurite"]) == ["/bin/azurite"]
    with pytest.raises(Refused, match="no command"):
        run([entry])


def test_a_command_that_is_called_by_its_name_is_executed(commands: Path) -> None:
    assert entrypoint._command(["/usr/bin/azurite-blob", "--silent"]) == [
        f"{commands}/azurite-blob",
        "--silent",
    ]
    assert entrypoint._command(["strongroom", "azurite"]) == [f"{commands}/strongroom", "azurite"]


@pytest.mark.parametrize(
    ("command", "data"),
    [
        ("azurite -l /elsewhere", "/elsewhere/strongroom-data"),
        ("azurite --location=/elsewhere", "/elsewhere/strongroom-data"),
        ("azurite-blob --silent", f"{os.getcwd()}/strongroom-data"),
        ("azurite --inMemoryPersistence", None),
        ("azurite --version", None),
        ("strongroom serve", "/data"),
        ("strongroom serve --data /a/b", "/a/b"),
        ("strongroom serve --in-memory", None),
        ("strongroom doctor", None),
        ("sh -l /x", None),
    ],
)
def test_where_a_command_keeps_its_data(commands: Path, command: str, data: str | None) -> None:
    name, *rest = command.split()
    assert entrypoint._data_of([str(commands / name), *rest]) == data


def test_the_variable_of_the_data_directory_counts(
    commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRONGROOM_DATA", "/volume")
    assert entrypoint._data_of(["strongroom", "serve"]) == "/volume"
    assert entrypoint._data_of(["strongroom", "serve", "--data", "/a"]) == "/a"


def test_files_of_flags_are_found_in_both_forms() -> None:
    assert entrypoint._file_flags(["x", "--store-file=/s"]) == [(1, "--store-file=", "/s")]
    found = entrypoint._file_flags(["x", "--cert", "/c", "--key=/k", "--blobHost", "/no", "--pfx"])
    assert found == [(2, "", "/c"), (3, "--key=", "/k")]


def test_files_of_variables_are_found_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRONGROOM_KEY", "/k")
    monkeypatch.setenv("STRONGROOM_PFX_PASSWORD_FILE", "/p")
    assert entrypoint._named_files(["x", "--cert", "/c"]) == ["/c", "/k", "/p"]


def test_what_only_root_can_read_is_replaced_by_its_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("key", "cert"):
        (tmp_path / name).write_text(name)
    key, certificate = str(tmp_path / "key"), str(tmp_path / "cert")
    monkeypatch.setenv("STRONGROOM_PFX", key)
    monkeypatch.setattr(os, "access", lambda path, _: path != key)
    command = ["x", f"--key={key}", "--cert", certificate]
    opened = entrypoint._open_files(command)
    changed = entrypoint._with_private_copies(command, opened)
    flag, _, copy = changed[1].partition("=")
    assert (flag, changed[2:], os.environ["STRONGROOM_PFX"]) == ("--key", command[2:], copy)
    assert Path(copy).read_text() == "key"
    assert capfd.readouterr().err.count(f"only root can read {key}") == 1
    for descriptor in (*opened.values(), int(copy.rpartition("/")[2])):
        os.close(descriptor)


def test_a_copy_in_memory_is_read_by_the_command_and_cannot_be_changed(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_bytes(b"secret" * 1000)
    descriptor = os.open(key, os.O_RDONLY)
    copy = entrypoint._private_copy(descriptor, str(key))
    os.close(descriptor)
    number = int(copy.rpartition("/")[2])
    try:
        read = f"import sys; sys.stdout.buffer.write(open({copy!r}, 'rb').read())"
        done = subprocess.run(
            (sys.executable, "-c", read), stdout=subprocess.PIPE, pass_fds=[number], check=True
        )
        assert done.stdout == key.read_bytes()
        assert os.fstat(number).st_mode & 0o777 == 0o400
        with pytest.raises(PermissionError):
            os.pwrite(number, b"x", 0)
    finally:
        os.close(number)


def test_a_secret_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrypoint, "_FILE_BYTES_MAX", 1000)
    (tmp_path / "key").write_bytes(bytes(1001))
    descriptor = os.open(tmp_path / "key", os.O_RDONLY)
    with pytest.raises(Refused, match="more than 1000"):
        entrypoint._private_copy(descriptor, "key")
    os.close(descriptor)


def test_only_an_empty_folder_becomes_the_servers(public_folder: Path) -> None:
    empty, volume, full = (public_folder / name for name in ("empty", "volume", "full"))
    for folder in (empty, volume, full):
        folder.mkdir()
    (volume / "lost+found").mkdir()
    (full / "of-another").touch()
    for folder in (empty, volume, full, public_folder / "missing"):
        entrypoint.make_own(str(folder))
    expected = entrypoint.USER if _IS_ROOT else os.geteuid()
    assert {empty.stat().st_uid, volume.stat().st_uid} == {expected}
    assert {full.stat().st_uid, (volume / "lost+found").stat().st_uid} == {os.geteuid()}


def test_a_folder_that_cannot_be_written_is_refused_with_user_and_command(
    commands: Path, public_folder: Path
) -> None:
    public_folder.chmod(0o555)
    code = (
        "from deploy.image import entrypoint as e\n"
        "e._IS_ROOT and e.give_up_rights()\n"
        f"e._check_data(['/x/azurite', '-l', {str(public_folder / 'new' / 'deep')!r}])\n"
    ).replace("e._IS_ROOT", str(_IS_ROOT))
    done = _python(code)
    user = entrypoint.USER if _IS_ROOT else os.geteuid()
    assert f"Refused: (4, 'user {user} cannot write {public_folder}, which belongs to " in done
    assert f"--entrypoint chown -v VOLUME:{public_folder} IMAGE -R {user}:{user}" in done


def test_no_right_of_root_is_left_and_none_comes_back() -> None:
    found = _python(
        "import os\n"
        "from deploy.image import entrypoint as e\n"
        "e.give_up_rights() if os.geteuid() == 0 else e._forbid_new_rights()\n"
        "for name in ('setuid', 'setgid', 'setgroups'):\n"
        "    try:\n"
        "        getattr(os, name)([0] if name == 'setgroups' else 0)\n"
        "    except PermissionError:\n"
        "        print(name, 'refused')\n"
        "print(os.getresuid(), os.getresgid(), os.getgroups() if os.getuid() == 10001 else [])\n"
        "print(open('/proc/self/status').read())\n"
        "import ctypes\n"
        "print('bound', ctypes.CDLL(None).prctl(23, 0, 0, 0, 0))\n"
    )
    for name in ("setuid", "setgid", "setgroups"):
        assert f"{name} refused" in found
    user = entrypoint.USER if _IS_ROOT else os.getuid()
    assert f"({user}, {user}, {user})" in found
    fields = dict(line.split(":\t", 1) for line in found.splitlines() if ":\t" in line)
    assert fields["NoNewPrivs"] == "1"
    assert {int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    if _IS_ROOT:
        assert "bound 0" in found, "the bounding set still permits CAP_CHOWN"


def test_rights_that_are_left_are_told() -> None:
    # This process itself gave up nothing.
    left = _python("from deploy.image import entrypoint as e; print(e.rights_left())")
    assert "no_new_privs is not set" in left
    if _IS_ROOT:
        assert "setuid(0) succeeds" in left and "CapEff" in left and "users (0, 0, 0)" in left


def _python(code: str) -> str:
    done = subprocess.run(
        (sys.executable, "-c", code), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.stdout
