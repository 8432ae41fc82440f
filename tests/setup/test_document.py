"""The form of a setup file: each error names the file, the line and the key."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from strongroom.setup import lines
from strongroom.setup.document import SetupError, parse
from strongroom.setup.files import FILE_BYTES_MAX, content_type, read_key, read_setup
from strongroom.setup.lines import line_of
from strongroom.setup.run import read

TEXT = """\
# a comment
[[accounts]]
name = "shop"

[[accounts.containers]]
name = "one"
policies = [
  { id = "a", permission = "r" },
  { id = "b", permission = "r" },
]

[[accounts.containers]]
# another comment

name = "two"
metadata.owner = "x"
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("accounts", 0), 2),
        (("accounts", 0, "name"), 3),
        (("accounts", 0, "containers", 0), 5),
        (("accounts", 0, "containers", 0, "policies"), 7),
        (("accounts", 0, "containers", 0, "policies", 1, "id"), 7),
        (("accounts", 0, "containers", 1), 12),
        (("accounts", 0, "containers", 1, "name"), 15),
        (("accounts", 0, "containers", 1, "metadata", "owner"), 16),
        (("accounts", 0, "containers", 1, "nothing"), 12),
        (("accounts", 5), 2),
        (("nothing",), 1),
    ],
)
def test_the_line_of_a_key(path: tuple[str | int, ...], line: int) -> None:
    assert line_of(TEXT, path) == line


def account(*lines: str) -> str:
    return "\n".join(('[[accounts]]\nname = "shop"', *lines, ""))


CONTAINER = '[[accounts.containers]]\nname = "box"'
QUEUE = '[[accounts.queues]]\nname = "box"'
SIX = ", ".join(f'{{ id = "{number}" }}' for number in range(6))
ROLE = '[[accounts.roles]]\nprincipal = "p"\nrole = "Storage Blob Data Reader"'
CORS = '[[accounts.cors]]\norigins = ["*"]\nmethods = ["GET"]'


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("accounts = 5\n", 1, "accounts: Expected `array`, got `int`"),
        ("other = 1\n", 1, "other: there is no such key"),
        ("[[accounts]]\n", 1, r"accounts\[0\]: the key 'name' is missing"),
        (account("name2 = 1"), 3, "name2: there is no such key"),
        (account(CONTAINER, 'acess = "blob"'), 5, "acess: there is no such key"),
        (account(CONTAINER, 'access = "all"'), 5, "access: Invalid enum value 'all'"),
        (account('[[accounts.containers]]\nname = "B_x"'), 4, "name: .*"),
        (account(CONTAINER, CONTAINER), 6, "name: 'box' is there already"),
        (account('[[accounts]]\nname = "shop"'), 4, "name: 'shop' is there already"),
        (account(CONTAINER, "metadata = { a = 1 }"), 5, "metadata.*: Expected `str`"),
        (account(CONTAINER, 'metadata = { "a b" = "x" }'), 5, "metadata: .*"),
        (account(CONTAINER, 'policies = [{ id = "a" }, { id = "a" }]'), 5, "id: 'a' is there"),
        (account(CONTAINER, 'policies = [{ id = "a", permission = "z" }]'), 5, ".*Permission|.*z"),
        (account(CONTAINER, 'policies = [{ id = "a", start = "soon" }]'), 5, ".*UTC time"),
        (account(CONTAINER, 'policies = [{ id = "a", start = 2026-01-01T00:00:00 }]'), 5, ".*UTC"),
        (account(CONTAINER, "policies = [{id='a', start=0001-01-01T00:00:00+14:00}]"), 5, ".*UTC"),
        (account(CONTAINER, r'policies = [{ id = "a\u0001" }]'), 5, "id: .*XML does not permit"),
        (account(QUEUE, 'policies = [{ id = "a", permission = "l" }]'), 5, ".*r, a, u and p"),
        (account(CONTAINER, f"policies = [{SIX}]"), 5, ".*more than five"),
        (account('[[accounts.tables]]\nname = "Tables"'), 4, "name: .*"),
        (account(CORS, "max_age_s = -1"), 3, "cors: .*MaxAge"),
        (account(CORS.replace("GET", "BREW")), 3, "cors: .*"),
        (account(CORS, 'services = ["disk"]'), 6, "services.*: Invalid enum value 'disk'"),
        (account(ROLE.replace("Reader", "Reeder")), 3, "there is no role"),
        (account(ROLE, 'queue = "box"'), 3, ".*is a role of blob only"),
        (account(ROLE, 'container = "box"', 'queue = "box"'), 3, "name one of"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line_and_key(text: str, line: int, message: str) -> None:
    with pytest.raises(SetupError, match=message) as error:
        parse("setup.toml", text)
    assert f"setup.toml, line {line}: " in str(error.value)


def test_a_file_that_is_not_toml_is_refused_with_the_line() -> None:
    with pytest.raises(SetupError, match=r"setup\.toml: .*line 2"):
        parse("setup.toml", "a = 1\nb = = 2\n")


@pytest.mark.parametrize("text", ["a = " + "[" * 3000 + "]" * 3000, "a = " + "9" * 5000])
def test_toml_that_the_parser_gives_up_on_is_refused(text: str) -> None:
    with pytest.raises(SetupError, match=r"^setup\.toml: "):
        parse("setup.toml", text)


def test_an_error_behind_a_long_array_is_found_without_parsing_each_line_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed_chars = []
    loads = tomllib.loads

    def counted(text: str) -> dict[str, Any]:
        parsed_chars.append(len(text))
        return loads(text)

    monkeypatch.setattr(tomllib, "loads", counted)
    names = "".join(f'  {{ name = "queue{number}" }},\n' for number in range(2000))
    text = account("queues = [", f"{names}]", "other = 1")
    with pytest.raises(SetupError, match=r"line 2005: .*other: there is no such key"):
        parse("setup.toml", text)
    assert sum(parsed_chars) < 20 * len(text)


def test_the_search_for_a_line_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_PARSED_CHARS_MAX", 100)
    assert 1 <= line_of(TEXT, ("accounts", 0, "containers", 1, "metadata")) <= 16


def test_a_folder_whose_name_no_system_has_is_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "setup.toml"
    path.write_text(account(CONTAINER, f'folder = "{"a" * 5000}"'))
    path.chmod(0o600)
    with pytest.raises(SetupError, match=r"line 5: .*folder: .*is not a folder"):
        read(path)


def test_an_empty_file_sets_up_nothing() -> None:
    document, _ = parse("setup.toml", "")
    assert document.accounts == ()


def test_times_are_utc(tmp_path: Path) -> None:
    text = account(CONTAINER, 'policies = [{ id = "a", start = 2026-01-01T02:00:00+02:00 }]')
    document, _ = parse("setup.toml", text)
    (policy,) = document.accounts[0].containers[0].policies or ()
    assert policy.start == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "setup.toml"
    path.write_text("")
    path.chmod(mode)
    with pytest.raises(SetupError, match="other users may write"):
        read_setup(path)
    path.chmod(0o644)
    assert read_setup(path) == ""


def test_a_setup_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot be read: No such file"):
        read_setup(tmp_path / "missing.toml")
    with pytest.raises(SetupError, match="cannot be read: Is a directory"):
        read_setup(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SetupError, match="is not a file"):
        read_setup(tmp_path / "pipe")
    path = tmp_path / "setup.toml"
    path.write_bytes(b"\xff\xfe")
    path.chmod(0o600)
    with pytest.raises(SetupError, match="not UTF-8"):
        read_setup(path)
    path.write_bytes(b"#" * (FILE_BYTES_MAX + 1))
    with pytest.raises(SetupError, match="longer than"):
        read_setup(path)


def test_a_key_comes_from_the_file_the_environment_or_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "shop.key"
    path.write_text("c2hvcA==\n")
    path.chmod(0o600)
    assert read_key("c2hvcA==", tmp_path, {}) == "c2hvcA=="
    assert read_key("env:KEY", tmp_path, {"KEY": " c2hvcA== "}) == "c2hvcA=="
    assert read_key("file:shop.key", tmp_path, {}) == "c2hvcA=="
    assert read_key(f"file:{path}", Path("/nowhere"), {}) == "c2hvcA=="


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("env:KEY", "KEY is not set"),
        ("file:missing", "cannot be read"),
        ("vault:shop", "base64, env:NAME or file:PATH"),
        ("file:a\0b", "is no path"),
    ],
)
def test_a_key_that_cannot_be_found_is_said(given: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=message):
        read_key(given, tmp_path, {"KEY": "  "})


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_a_key_that_others_may_read_is_refused_without_being_shown(
    mode: int, tmp_path: Path
) -> None:
    path = tmp_path / "shop.key"
    path.write_text("c2VjcmV0")
    path.chmod(mode)
    with pytest.raises(SetupError, match="other users may read or write") as error:
        read_key("file:shop.key", tmp_path, {})
    assert "c2VjcmV0" not in str(error.value)


def test_media_types_come_from_the_program_s_own_table() -> None:
    assert content_type("a.json") == "application/json"
    assert content_type("A.PNG") == "image/png"
    assert content_type("a.svg") == "image/svg+xml"
    assert content_type("a.tar.gz") == "application/gzip"
    assert content_type("README") == content_type("a.nothing") == "application/octet-stream"
