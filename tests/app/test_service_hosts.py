"""Services on hosts of their own, and services that are left out."""

from __future__ import annotations

import asyncio
import socket

import pytest

from strongroom.app import App, CannotListen
from strongroom.auth.accounts import development_account
from strongroom.clock import SystemClock
from strongroom.config import (
    ConfigError,
    OAuth,
    ServiceHosts,
    Settings,
    SmbFlags,
    check_exposure,
    check_oauth,
)
from strongroom.servers.connections.accepting import why_not_bound
from strongroom.servers.listener import RefusedListener
from strongroom.testing.ports import HOST, free_port

OTHER_HOST = "127.0.0.2"


def _settings(**given: object) -> Settings:
    ports = {f"{service}_port": free_port() for service in ("blob", "queue", "table", "file")}
    return Settings(**{"data": None, **ports, **given})  # type: ignore[arg-type]


def _ports_of(settings: Settings) -> dict[str, int]:
    async def serve() -> dict[str, int]:
        app = App(settings, SystemClock())
        await app.start()
        try:
            return dict(app.ports)
        finally:
            await app.stop()

    return asyncio.run(serve())


def test_a_service_that_is_left_out_is_not_opened() -> None:
    settings = _settings(services=("queue", "table"))
    assert [*_ports_of(settings)] == ["queue", "table"]
    with socket.create_server((HOST, settings.blob_port)):
        assert [*_ports_of(settings)] == ["queue", "table"]


def test_each_service_listens_on_its_own_host() -> None:
    async def reached() -> list[bool]:
        settings = _settings(
            services=("blob", "queue"), host=HOST, hosts=ServiceHosts(queue=OTHER_HOST)
        )
        app = App(settings, SystemClock())
        await app.start()
        found = []
        try:
            for host, port in (
                (HOST, settings.blob_port),
                (OTHER_HOST, settings.blob_port),
                (HOST, settings.queue_port),
                (OTHER_HOST, settings.queue_port),
            ):
                try:
                    _, writer = await asyncio.open_connection(host, port)
                except ConnectionRefusedError:
                    found.append(False)
                else:
                    found.append(True)
                    writer.close()
        finally:
            await app.stop()
        assert HOST in app.description() and OTHER_HOST in app.description()
        return found

    assert asyncio.run(reached()) == [True, False, False, True]


def test_the_hosts_that_are_listened_on() -> None:
    own = ServiceHosts(blob="a", queue="b")
    assert Settings(host="c", hosts=own).listening_hosts() == ("a", "b", "c")
    assert Settings(host="c", hosts=own, services=("blob",)).listening_hosts() == ("a",)
    assert Settings(host="c", hosts=own, services=("blob",), one_port=1).listening_hosts() == (
        "a",
        "c",
    )
    assert Settings(host="c", services=(), smb=SmbFlags()).listening_hosts() == ("c",)


def test_one_service_that_others_reach_exposes_all_accounts() -> None:
    accounts = [development_account()]
    inside = Settings(hosts=ServiceHosts(table="::1"))
    check_exposure(inside, accounts)
    exposed = Settings(hosts=ServiceHosts(table="0.0.0.0"))
    with pytest.raises(ConfigError, match=r"'0\.0\.0\.0' can be reached"):
        check_exposure(exposed, accounts)
    with pytest.raises(ConfigError, match=r"'0\.0\.0\.0' can be reached"):
        check_oauth(Settings(hosts=ServiceHosts(table="0.0.0.0"), oauth=OAuth()))
    left_out = Settings(hosts=ServiceHosts(table="0.0.0.0"), services=("blob",))
    check_exposure(left_out, accounts)


def test_unsigned_tokens_are_for_other_machines_only_if_the_program_allows_it() -> None:
    check_oauth(Settings(host="0.0.0.0", oauth=OAuth(), allow_unsigned_tokens=True))


def test_a_port_that_is_taken_is_told_as_values_too() -> None:
    settings = _settings(hosts=ServiceHosts(queue=HOST), services=("queue",))
    with socket.create_server((HOST, settings.queue_port)), pytest.raises(CannotListen) as refusal:
        _ports_of(settings)
    refused = refusal.value.refused
    assert isinstance(refused, RefusedListener)
    assert refused[:3] == ("queue", HOST, settings.queue_port)
    assert "in use" in refused.reason


@pytest.mark.parametrize("host", ["no-such-host.invalid", f"{'n' * 64}.invalid"])
def test_a_host_that_there_is_not_is_told_as_a_value_too(host: str) -> None:
    settings = _settings(hosts=ServiceHosts(queue=host))
    with pytest.raises(CannotListen, match="no such name or address") as refusal:
        _ports_of(settings)
    assert refusal.value.refused is not None
    assert refusal.value.refused[:2] == (None, host)


def test_a_name_that_cannot_be_one_is_a_reason_why_a_port_is_not_opened() -> None:
    error = asyncio.run(why_not_bound(f"{'n' * 64}.invalid", 0))
    assert error is not None and "no such name" in str(error)


def test_memory_is_bounded_by_the_settings() -> None:
    async def full() -> bool:
        app = App(_settings(memory_max_bytes=0), SystemClock())
        await app.start()
        try:
            return app.store.data.is_full  # type: ignore[union-attr]
        finally:
            await app.stop()

    assert asyncio.run(full())
