"""The URL of a database: which are refused, what may be shown of one, and where a password is."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg import conninfo

from strongroom.config import Settings
from strongroom.database import DatabaseSettings, UnusableUrl, check_url, has_password, shown

SECRET = "s3cret"

USABLE = {
    "postgresql://u@db1/store": "PostgreSQL at db1/store",
    f"postgres://u:{SECRET}@db1:5433,db2/store?sslmode=require": "PostgreSQL at db1:5433,db2/store",
    f"postgresql://db1/store?user=u&password={SECRET}": "PostgreSQL at db1/store",
    f"postgresql://u:{SECRET}@[::1]:5432/store": "PostgreSQL at [::1]:5432/store",
    "postgresql:///store?host=/run/postgresql": "PostgreSQL at /run/postgresql/store",
    "postgresql://%2Frun%2Fpostgresql/store": "PostgreSQL at /run/postgresql/store",
    "postgresql://?service=strongroom": "PostgreSQL at service strongroom",
    "postgresql://db1?dbname=store": "PostgreSQL at db1/store",
    "postgresql:///": "PostgreSQL at the default host",
    f"postgresql://u:{SECRET}%40%2F%25@db1/store": "PostgreSQL at db1/store",
}
# Of each of them libpq would show a part of the password, or take it for a host or a port.
UNUSABLE = (
    f"postgresql://u:{SECRET}@{SECRET}@db1/store",
    f"postgresql://u:{SECRET}/{SECRET}@db1/store",
    f"postgresql://u:{SECRET}?{SECRET}@db1/store",
    f"postgresql://u:50%{SECRET}@db1/store",
    f"postgresql://u:%00{SECRET}@db1/store",
    f"postgresql://u:{SECRET} {SECRET}@db1/store",
    f"postgresql://db1:{SECRET}/store",
    f"postgresql://db1/store?password=a@{SECRET}",
    f"mysql://u:{SECRET}@db1/store",
    f"host=db1 password={SECRET}",
    "",
)


@pytest.mark.parametrize("url", USABLE)
def test_a_url_is_shown_without_its_user_and_password(url: str) -> None:
    check_url(url)
    assert shown(url) == USABLE[url]
    settings = Settings(store=DatabaseSettings(url))
    assert SECRET not in f"{settings!r} {settings} {settings.store}"


@pytest.mark.parametrize("url", USABLE)
def test_libpq_reads_a_usable_url_as_it_is_read_here(url: str) -> None:
    read = conninfo.conninfo_to_dict(url)
    assert has_password(url) == ("password" in read)
    assert str(read.get("dbname", "")) in shown(url)
    for host in str(read.get("host", "")).split(","):
        assert host in shown(url)


@pytest.mark.parametrize(
    ("store", "flags"),
    [
        (DatabaseSettings("postgresql://u@db1/x"), "--store postgresql://u@db1/x"),
        (DatabaseSettings(f"postgresql://u:{SECRET}@db1/x"), "--store URL"),
        (DatabaseSettings(f"postgresql://db1/x?password={SECRET}"), "--store URL"),
        (
            DatabaseSettings(f"postgresql://u:{SECRET}@db1/x", schema="b", file=Path("/etc/a b")),
            "--store-file '/etc/a b' --store-schema b",
        ),
    ],
)
def test_commands_name_it_by_flags_without_a_secret(store: DatabaseSettings, flags: str) -> None:
    assert store.flags == flags
    assert Settings(store=store).store == store
    assert SECRET not in f"{store!r} {store.flags}"


@pytest.mark.parametrize("url", UNUSABLE)
def test_a_url_that_libpq_would_misread_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(UnusableUrl) as refused:
        check_url(url)
    assert SECRET not in str(refused.value)
    assert SECRET not in shown(url)
    # A password that cannot be told from the rest is taken to be there.
    assert has_password(url) or not url.startswith("postgres")
