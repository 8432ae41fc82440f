"""The account: service properties stored section by section, account information, CORS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strongroom import service_properties
from strongroom.auth.request import Service
from strongroom.clock import SystemClock
from strongroom.engines.embedded import open_store
from strongroom.service_properties import (
    CorsRule,
    Logging,
    Metrics,
    RetentionPolicy,
    ServiceProperties,
    StaticWebsite,
)
from strongroom.services.core import account
from strongroom.services.core.account import Preflight, SetServiceProperties
from strongroom.services.core.runner import Services
from tests.services import container_calls as given

RULE = CorsRule(("https://a.example",), ("GET", "PUT"), ("x-ms-meta-*",), ("ETag",), 60)
ANYONE = CorsRule(("*",), ("GET",))


async def put(on: Services, **sections: Any) -> None:
    asked = SetServiceProperties(ServiceProperties(**sections))
    await account.set_properties(on, given.call(asked, container=""))


async def get(on: Services) -> ServiceProperties:
    return await account.get_properties(on, given.call(container=""))


def test_before_anything_was_set_there_are_defaults() -> None:
    """B-SVC-01."""

    async def scenario() -> None:
        assert await get(given.services()) == service_properties.DEFAULTS["blob"]

    given.run(scenario)


def test_sections_that_are_not_sent_stay() -> None:
    """B-SVC-02."""

    async def scenario() -> None:
        on = given.services()
        logging = Logging(delete=True, retention=RetentionPolicy(True, 7))
        await put(on, logging=logging, cors=(RULE,))
        await put(on, default_service_version="2020-02-10", hour_metrics=Metrics(enabled=False))
        found = await get(on)
        assert (found.logging, found.cors) == (logging, (RULE,))
        assert found.default_service_version == "2020-02-10"
        assert found.static_website == StaticWebsite()
        await put(on, cors=())
        found = await get(on)
        assert found.cors == () and found.logging == logging

    given.run(scenario)


def test_what_was_set_is_there_after_a_restart(tmp_path: Path) -> None:
    """B-SVC-02."""

    async def scenario() -> None:
        store = await open_store(tmp_path, SystemClock())
        await put(given.services(store), cors=(RULE,), default_service_version="2020-02-10")
        before = await get(given.services(store))
        await store.close()
        store = await open_store(tmp_path, SystemClock())
        assert await get(given.services(store)) == before
        await store.close()

    given.run(scenario)


def test_accounts_have_their_own_properties() -> None:
    async def scenario() -> None:
        on = given.services()
        await put(on, cors=(RULE,))
        other = given.call(account="other")
        assert await account.get_properties(on, other) == service_properties.DEFAULTS["blob"]

    given.run(scenario)


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"cors": (RULE,) * 6}, (400, "InvalidXmlDocument")),
        ({"cors": (CorsRule(("x" * 257,), ("GET",)),)}, (400, "InvalidXmlNodeValue")),
        ({"cors": (CorsRule(("*",), ("FETCH",)),)}, (400, "InvalidXmlNodeValue")),
        ({"static_website": StaticWebsite(True)}, (501, "NotImplemented")),
    ],
)
def test_what_is_refused_changes_nothing(
    sections: dict[str, Any], expected: tuple[int, str]
) -> None:
    """B-SVC-03, B-SVC-04."""

    async def scenario() -> None:
        on = given.services()
        logging = Logging(read=True)
        assert await given.refused(put(on, logging=logging, **sections)) == expected
        assert await get(on) == service_properties.DEFAULTS["blob"]

    given.run(scenario)


def test_sections_that_together_are_too_large_are_refused() -> None:
    """B-ERR-07."""

    async def scenario() -> None:
        on = given.services()
        await put(on, logging=Logging(version="1" * 60_000))
        attempt = put(on, hour_metrics=Metrics(version="1" * 60_000))
        assert await given.refused(attempt) == (413, "RequestBodyTooLarge")

    given.run(scenario)


def test_account_information() -> None:
    """B-SVC-05."""

    async def scenario() -> None:
        found = await account.get_information(given.services(), given.call())
        assert (found.sku_name, found.kind) == ("Standard_LRS", "StorageV2")
        assert not found.hierarchical_namespace

    given.run(scenario)


def test_a_preflight_is_answered_by_the_stored_rules() -> None:
    """B-COR-01, B-COR-02, B-COR-03, B-COR-04."""

    async def scenario() -> None:
        on = given.services()
        origin = "https://a.example"

        async def ask(*asked: Any) -> dict[str, str]:
            return dict(await account.preflight(on, given.call(Preflight(*asked))))

        assert await given.refused(ask(origin, "PUT", ())) == (403, "CorsPreflightFailure")
        await put(on, cors=(RULE,))
        found = await ask(origin, "PUT", ("X-Ms-Meta-Colour",))
        assert found["Access-Control-Allow-Origin"] == origin
        assert found["Access-Control-Allow-Credentials"] == "true"
        assert found["Access-Control-Max-Age"] == "60"
        refusals = [
            await given.refused(ask(*asked))
            for asked in ((origin, "PUT", ("x-other",)), (origin, "DELETE", ()))
        ]
        assert refusals == [(403, "CorsPreflightFailure")] * 2
        assert await given.refused(ask(None, "PUT", ())) == (400, "InvalidHeaderValue")
        assert await given.refused(ask(origin, None, ())) == (400, "InvalidHeaderValue")
        await put(on, cors=(ANYONE,))
        found = await ask("https://b.example", "GET", ())
        assert found["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in found

    given.run(scenario)


def test_actual_requests_get_the_headers_of_the_rule() -> None:
    """B-COR-05, B-COR-06."""

    async def scenario() -> None:
        on = given.services()
        origin, names = "https://a.example", ("ETag", "Date")

        async def ask(origin: str | None, method: str) -> dict[str, str]:
            headers = account.cors_headers(on, Service.BLOB, given.ACCOUNT, origin, method, names)
            return dict(await headers)

        assert await ask(origin, "GET") == {}
        await put(on, cors=(RULE,))
        found = await ask(origin, "GET")
        assert found["Access-Control-Allow-Origin"] == origin
        assert found["Access-Control-Expose-Headers"] == "ETag"
        assert found["Vary"] == "Origin"
        assert await ask("https://b.example", "GET") == {"Vary": "Origin"}
        assert await ask(None, "GET") == {"Vary": "Origin"}
        assert await ask(None, "PUT") == {}

    given.run(scenario)
