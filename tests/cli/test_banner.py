"""The start-up text is short where a short connection string does."""

from __future__ import annotations

import pytest

from strongroom.auth.request import Service
from strongroom.cli.serving.banner import banner
from strongroom.config import DEFAULT_PORTS
from strongroom.engines.postgres.store import PostgresEngine
from strongroom.testing import InProcessServer
from tests.app.gateways_of_a_store import settings_over
from tests.over_postgres import new_store


def test_the_promise_names_standbys_only_where_there_are_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with InProcessServer(settings_over(new_store())) as server:
        app = server._app
        assert "which waits for no standby" in banner(app)
        assert isinstance(app.store, PostgresEngine)
        monkeypatch.setattr(PostgresEngine, "has_standbys", True)
        assert "and on its synchronous standbys" in banner(app)


def test_the_known_key_is_shown_only_where_clients_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with InProcessServer.start() as server:
        app = server._app
        assert server.connection_string in banner(app)
        for service, port in zip(Service, DEFAULT_PORTS, strict=True):
            monkeypatch.setitem(app.ports, service.value, port)
        usual = banner(app)
    assert "AccountKey" not in usual
    assert "UseDevelopmentStorage=true\n" in usual
    assert max(map(len, usual.splitlines())) <= 90
