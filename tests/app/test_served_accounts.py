"""The accounts that are served, as their file changes."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from strongroom.auth.accounts import Account, AccountsError, development_account
from strongroom.servers.identities import private_file
from strongroom.servers.identities.accounts_file import (
    FILE_BYTES_MAX,
    ServedAccounts,
    change_accounts,
    read_accounts,
)

ONE, TWO = Account("one", (b"1",)), Account("two", (b"2",))
DEVELOPMENT = development_account()


def admit_all(accounts: tuple[Account, ...]) -> None:
    assert isinstance(accounts, tuple)


def served(*fixed: Account, file: Path | None = None) -> ServedAccounts:
    return ServedAccounts(fixed, file, DEVELOPMENT, admit_all)


def put(file: Path, *accounts: Account) -> None:
    change_accounts(file, lambda before: accounts)


def test_the_fallback_is_served_only_where_there_is_no_other(tmp_path: Path) -> None:
    assert served().get(DEVELOPMENT.name) == DEVELOPMENT
    assert served(ONE).get(DEVELOPMENT.name) is None
    put(tmp_path / "a.json", TWO)
    assert served(file=tmp_path / "a.json").get(DEVELOPMENT.name) is None


def test_a_file_is_seen_at_once_when_it_comes_and_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    accounts = served(file=file)
    assert accounts.get("one") is None
    put(file, ONE)
    assert accounts.get("one") == ONE
    assert accounts.get(DEVELOPMENT.name) is None
    for key in range(50):
        changed = Account("one", (bytes([key + 1]),))
        put(file, changed)
        assert accounts.get("one") == changed


def test_all_accounts_are_those_of_the_file_now(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    accounts = served(file=file)
    assert accounts.all() == (DEVELOPMENT,)
    put(file, ONE, TWO)
    assert accounts.all() == (ONE, TWO)


def test_one_look_serves_what_is_here_and_what_comes_later_looks_again(tmp_path: Path) -> None:
    file, later = tmp_path / "a.json", list[Callable[[], None]]()
    accounts = ServedAccounts((), file, DEVELOPMENT, admit_all, later.append)
    assert accounts.get("one") is None
    put(file, ONE)
    assert accounts.get("one") is None
    (look_again,) = later
    look_again()
    assert accounts.get("one") == ONE
    assert len(later) == 2


def test_fixed_accounts_stay_beside_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    put(file, TWO)
    accounts = served(ONE, file=file)
    assert {account.name for account in accounts.all()} == {"one", "two"}
    put(file, Account("three", (b"3",)))
    assert accounts.get("two") is None
    assert accounts.get("one") == ONE


def test_a_name_of_two_sources_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    put(file, ONE)
    with pytest.raises(AccountsError, match="'one'"):
        served(ONE, file=file)


@pytest.mark.parametrize("text", [b"", b"{}", b'{"accounts": []}', b"\xff", b"[" * 100_000])
def test_a_file_that_breaks_changes_nothing(
    tmp_path: Path, text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "a.json"
    put(file, ONE)
    accounts = served(file=file)
    file.write_bytes(text)
    assert accounts.get("one") == ONE
    assert accounts.get("one") == ONE
    assert len([r for r in caplog.records if "what it said before stays" in r.getMessage()]) == 1
    put_again = tmp_path / "b.json"
    put(put_again, TWO)
    put_again.replace(file)
    assert accounts.get("two") == TWO


def test_a_file_that_could_not_be_read_is_read_at_the_next_look(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.json"
    put(file, ONE)
    accounts = served(file=file)
    put(file, TWO)

    def no_descriptor_left(*given: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(private_file, "open", no_descriptor_left, raising=False)
        assert [accounts.get("one") for _ in range(3)] == [ONE] * 3
    assert len([r for r in caplog.records if "Too many open files" in r.getMessage()]) == 1
    assert (accounts.get("one"), accounts.get("two")) == (None, TWO)


def test_a_file_that_goes_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    put(file, ONE)
    accounts = served(file=file)
    file.unlink()
    assert accounts.get("one") == ONE
    assert accounts.get(DEVELOPMENT.name) is None


def test_what_may_not_be_served_is_not_taken_from_a_changed_file(tmp_path: Path) -> None:
    def refuse_two(accounts: tuple[Account, ...]) -> None:
        if TWO in accounts:
            raise AccountsError("not two")

    file = tmp_path / "a.json"
    put(file, ONE)
    accounts = ServedAccounts((), file, None, refuse_two)
    put(file, ONE, TWO)
    assert accounts.get("two") is None
    assert accounts.get("one") == ONE
    with pytest.raises(AccountsError, match="not two"):
        ServedAccounts((), file, None, refuse_two)


def test_a_file_without_bound_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b" " * (FILE_BYTES_MAX + 1))
    with pytest.raises(AccountsError, match="longer"):
        read_accounts(file)


def test_a_change_that_fails_leaves_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    put(file, ONE)

    def fail(before: tuple[Account, ...]) -> tuple[Account, ...]:
        raise AccountsError("no")

    with pytest.raises(AccountsError):
        change_accounts(file, fail)
    assert read_accounts(file) == (ONE,)


def test_what_a_cut_off_change_left_is_in_nobodys_way(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    (tmp_path / "a.json.new").write_text("half of")
    put(file, ONE)
    assert read_accounts(file) == (ONE,)
