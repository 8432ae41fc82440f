"""The start-up text is short where a short connection string does."""

from __future__ import annotations

import pytest

from strongroom.auth.request import Service
from strongroom.cli.serving.banner import banner
from strongroom.config import DEFAULT_PORTS
from strongroom.testing import InProcessServer


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
