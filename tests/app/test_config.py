"""Settings: the sources of accounts, and invalid combinations of settings."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from strongroom.auth.accounts import Account, development_account
from strongroom.config import (
    ConfigError,
    OAuth,
    Settings,
    account_sources,
    check_exposure,
    check_oauth,
    has_development_key,
    is_loopback,
    oauth_settings,
    roles_source,
)

KEY = base64.b64encode(b"key").decode()


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("127.0.0.1.example", False),
    ],
)
def test_only_this_machine_counts_as_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) == expected


def test_the_development_key_is_found_in_either_place_under_any_name() -> None:
    (known,) = development_account().keys
    assert has_development_key(development_account())
    assert has_development_key(Account("mine", (known,)))
    assert has_development_key(Account("mine", (b"other", known)))
    assert not has_development_key(Account("devstoreaccount1", (b"other",)))


def test_exposure_is_refused_unless_allowed() -> None:
    accounts = [development_account()]
    check_exposure(Settings(host="localhost"), accounts)
    check_exposure(Settings(host="0.0.0.0", allow_development_key=True), accounts)
    check_exposure(Settings(host="0.0.0.0"), [Account("mine", (b"own",))])
    with pytest.raises(ConfigError, match="--allow-development-key"):
        check_exposure(Settings(host="0.0.0.0"), accounts)
    everyone = Settings(host="0.0.0.0", allow_development_key=True, allow_reset=True)
    with pytest.raises(ConfigError, match="anybody could sign a reset"):
        check_exposure(everyone, accounts)
    check_exposure(everyone, [Account("mine", (b"own",))])
    check_exposure(Settings(allow_reset=True), accounts)


def test_accounts_of_flags_and_environment_are_put_together() -> None:
    environment = {"STRONGROOM_ACCOUNTS": f"two:{KEY}", "AZURITE_ACCOUNTS": f"three:{KEY}"}
    sources = account_sources([f"one:{KEY}:{KEY}"], None, Path("data"), environment)
    assert [account.name for account in sources.fixed] == ["one", "two"]
    assert sources.file == Path("data/accounts.json")
    assert not sources.must_exist


def test_azurites_variable_is_read_when_ours_is_empty() -> None:
    environment = {"STRONGROOM_ACCOUNTS": "", "AZURITE_ACCOUNTS": f"three:{KEY};four:{KEY}"}
    sources = account_sources([], None, None, environment)
    assert [account.name for account in sources.fixed] == ["three", "four"]
    assert sources.file is None


def test_a_named_file_must_exist() -> None:
    sources = account_sources([], Path("keys.json"), Path("data"), {})
    assert (sources.file, sources.must_exist) == (Path("keys.json"), True)


@pytest.mark.parametrize(
    ("given", "environment", "words"),
    [
        (["one"], {}, "--account"),
        ([f"one:{KEY}:{KEY}:{KEY}"], {}, "one or two"),
        ([], {"STRONGROOM_ACCOUNTS": "one:???"}, "STRONGROOM_ACCOUNTS"),
        ([], {"AZURITE_ACCOUNTS": ";"}, "AZURITE_ACCOUNTS"),
        ([f"one:{KEY}"], {"STRONGROOM_ACCOUNTS": f"one:{KEY}"}, "twice"),
    ],
)
def test_bad_accounts_are_refused_by_where_they_stand(
    given: list[str], environment: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as refusal:
        account_sources(given, None, None, environment)
    assert KEY not in str(refusal.value)
    assert "???" not in str(refusal.value)


def test_tokens_that_anybody_can_write_are_for_this_machine_only() -> None:
    """B-BRR-10."""
    check_oauth(Settings(host="0.0.0.0"))
    check_oauth(Settings(host="127.0.0.1", oauth=OAuth()))
    check_oauth(Settings(host="0.0.0.0", oauth=OAuth("https://x", "keys.json")))
    for allowed in (False, True):
        with pytest.raises(ConfigError, match="--oauth-issuer"):
            check_oauth(Settings(host="0.0.0.0", oauth=OAuth(), allow_development_key=allowed))


def test_whose_tokens_are_accepted() -> None:
    assert oauth_settings(None, None, None) is None
    assert oauth_settings("basic", None, None) == OAuth()
    assert oauth_settings("basic", "https://i", None, ["a"], "t") == OAuth(
        "https://i", None, ("a",), "t"
    )
    assert oauth_settings(None, "https://i", "k.json") == OAuth("https://i", "k.json")
    assert oauth_settings(None, "https://i", "HTTPS://i/keys") == OAuth(
        "https://i", "HTTPS://i/keys"
    )
    for issuer in ("a\r\nSet-Cookie: x", "", "é"):
        with pytest.raises(ConfigError):
            oauth_settings(None, issuer, "k.json")


def test_where_roles_come_from(tmp_path: Path) -> None:
    assert roles_source(None, tmp_path).file == tmp_path / "roles.json"
    assert roles_source(None, None).file is None
    named = roles_source(tmp_path / "other.json", tmp_path)
    assert named.file == tmp_path / "other.json" and named.must_exist
