"""Containers, leases, lists and the account through the whole path of a request: the declarations.

No sockets: signed requests go in, responses come out, and an error that an operation does not
declare fails the test.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any
from xml.etree import ElementTree

import pytest

from strongroom.clock import ManualClock
from strongroom.engines.memory import MemoryEngine
from strongroom.operations.blob.endpoint import ENDPOINT
from strongroom.servers.requests.admission import ServiceContext
from strongroom.servers.requests.pipeline import respond
from strongroom.services.core.runner import Services
from strongroom.wire.core.http import Headers, Request
from tests.auth.signing import DATE, NAME, NOW, OneAccount, sdk_authorization

A = "aaaaaaaa-0000-0000-0000-000000000000"
B = "bbbbbbbb-0000-0000-0000-000000000000"
ACL = (
    b"<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Permission>rl</Permission>"
    b"</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
)
CORS = (
    b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>"
    b"GET</AllowedMethods><AllowedHeaders /><ExposedHeaders /><MaxAgeInSeconds>5</MaxAgeInSeconds>"
    b"</CorsRule></Cors></StorageServiceProperties>"
)


class Bytes:
    """A body at hand."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size_bytes: int | None = len(data)
        self.is_held_back = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.data

    async def read_all(self, max_bytes: int) -> bytes:
        return self.data[:max_bytes]


class Answer:
    """A response with its body read."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    def texts(self, path: str) -> list[str]:
        return [found.text or "" for found in ElementTree.fromstring(self.body).iterfind(path)]


class Server:
    """The path of a request, over a store in memory."""

    def __init__(self) -> None:
        clock = ManualClock(NOW)
        self.store = MemoryEngine(clock)
        services = Services(self.store, clock)
        self.context = ServiceContext(services, ENDPOINT, OneAccount(), clock, strict=True)

    async def __call__(
        self, method: str, target: str, body: bytes = b"", **headers: str | int
    ) -> Answer:
        fields = {"x-ms-date": DATE, "x-ms-version": "2021-12-02", "Host": "127.0.0.1"}
        if method == "PUT":
            fields["Content-Length"] = str(len(body))
        given = {name.replace("_", "-"): str(value) for name, value in headers.items()}
        fields |= {name: value for name, value in given.items() if value}
        target = f"/{NAME}{target}"
        fields["Authorization"] = sdk_authorization(method, f"http://127.0.0.1{target}", fields)
        request = Request(method, target, Headers(fields.items()), Bytes(body))
        response = await respond(self.context, request)
        sent = response.body
        if not isinstance(sent, bytes):
            sent = b"".join([piece async for piece in sent if isinstance(piece, bytes)])
        found = {name.lower(): value for name, value in response.headers}
        return Answer(response.status, found, sent)


def run(scenario: Callable[[Server], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scenario(Server()), 60)

    asyncio.run(bounded())


def test_a_container_from_creation_to_deletion() -> None:
    """B-CON-01, B-CON-03, B-CON-04, B-MET-01, B-MET-02, B-ETG-01."""

    async def scenario(ask: Server) -> None:
        made = await ask("PUT", "/c01?restype=container", x_ms_meta_Owner="ann")
        assert made.status == 201 and made.headers["etag"].startswith('"0x8D')
        again = await ask("PUT", "/c01?restype=container")
        assert (again.status, again.headers["x-ms-error-code"]) == (409, "ContainerAlreadyExists")
        for method in ("GET", "HEAD"):
            found = await ask(method, "/c01?restype=container")
            assert found.status == 200 and found.body == b""
            assert found.headers["x-ms-meta-owner"] == "ann"
            assert found.headers["etag"] == made.headers["etag"]
            assert found.headers["last-modified"] == DATE
            assert found.headers["x-ms-lease-state"] == "available"
            assert found.headers["x-ms-has-legal-hold"] == "false"
            assert "x-ms-blob-public-access" not in found.headers
        changed = await ask("PUT", "/c01?restype=container&comp=metadata", x_ms_meta_a="1")
        assert changed.status == 200 and changed.headers["etag"] > made.headers["etag"]
        found = await ask("GET", "/c01?restype=container&comp=metadata")
        assert found.headers["x-ms-meta-a"] == "1" and "x-ms-meta-owner" not in found.headers
        gone = await ask("DELETE", "/c01?restype=container")
        assert gone.status == 202 and "etag" not in gone.headers
        missing = await ask("GET", "/c01?restype=container&comp=list")
        assert (missing.status, missing.headers["x-ms-error-code"]) == (404, "ContainerNotFound")

    run(scenario)


def test_the_access_control_list() -> None:
    """B-CON-02, B-CON-07, B-CON-08."""

    async def scenario(ask: Server) -> None:
        await ask("PUT", "/c01?restype=container")
        acl = "/c01?restype=container&comp=acl"
        put = await ask("PUT", acl, ACL, x_ms_blob_public_access="blob")
        assert put.status == 200 and "etag" in put.headers
        found = await ask("GET", acl)
        assert found.headers["content-type"] == "application/xml"
        assert found.headers["x-ms-blob-public-access"] == "blob"
        assert found.texts("SignedIdentifier/Id") == ["p"]
        assert found.texts("SignedIdentifier/AccessPolicy/Permission") == ["rl"]
        assert (await ask("PUT", acl)).status == 200
        found = await ask("GET", acl)
        assert found.texts("SignedIdentifier") == []
        assert "x-ms-blob-public-access" not in found.headers
        for target in (acl, "/c02?restype=container"):
            wrong = await ask("PUT", target, x_ms_blob_public_access="all")
            assert (wrong.status, wrong.headers["x-ms-error-code"]) == (400, "InvalidHeaderValue")

    run(scenario)


@pytest.mark.parametrize("target", ["/c01?restype=container&comp=lease", "/c01/b?comp=lease"])
def test_the_five_lease_actions(target: str) -> None:
    """B-LSE-14, B-LSE-15, B-LSE-16, B-LSE-19."""

    async def scenario(ask: Server) -> None:
        await ask("PUT", "/c01?restype=container")
        await ask("PUT", "/c01/b", b"x", x_ms_blob_type="BlockBlob")

        async def act(action: str, **headers: str | int) -> Answer:
            return await ask("PUT", target, b"", x_ms_lease_action=action, **headers)

        braced = "{" + A.upper() + "}"
        taken = await act("acquire", x_ms_lease_duration=-1, x_ms_proposed_lease_id=braced)
        assert (taken.status, taken.headers["x-ms-lease-id"]) == (201, A)
        assert "etag" in taken.headers and "last-modified" in taken.headers
        other = await act("acquire", x_ms_lease_duration=15)
        assert (other.status, other.headers["x-ms-error-code"]) == (409, "LeaseAlreadyPresent")
        assert (await act("renew", x_ms_lease_id=A)).headers["x-ms-lease-id"] == A
        moved = await act("change", x_ms_lease_id=A, x_ms_proposed_lease_id=B)
        assert (moved.status, moved.headers["x-ms-lease-id"]) == (200, B)
        broken = await act("break", x_ms_lease_break_period=20)
        assert (broken.status, broken.headers["x-ms-lease-time"]) == (202, "20")
        freed = await act("release", x_ms_lease_id=B)
        assert freed.status == 200
        assert not {"x-ms-lease-id", "x-ms-lease-time"} & set(freed.headers)
        for answer in (
            await act("acquire"),
            await act("renew"),
            await act("release"),
            await act("change", x_ms_lease_id=A),
            await ask("PUT", target),
        ):
            code = answer.headers["x-ms-error-code"]
            assert (answer.status, code) == (400, "MissingRequiredHeader")
        for answer in (
            await act("acquire", x_ms_lease_duration=14),
            await act("acquire", x_ms_lease_duration="x"),
            await act("acquire", x_ms_lease_duration=15, x_ms_proposed_lease_id="x"),
            await act("break", x_ms_lease_break_period=61),
            await act("lock"),
        ):
            code = answer.headers["x-ms-error-code"]
            assert (answer.status, code) == (400, "InvalidHeaderValue")

    run(scenario)


def test_blobs_are_listed_flat_and_by_hierarchy() -> None:
    """B-LST-01, B-LST-02, B-LST-04, B-LST-07, B-LST-10, B-CLS-04."""

    async def scenario(ask: Server) -> None:
        await ask("PUT", "/c01?restype=container")
        for name in ("a", "d/1", "d/2", "e"):
            tier = "Cool" if name == "a" else ""
            put = await ask(
                "PUT",
                f"/c01/{name}",
                b"xyz",
                x_ms_blob_type="BlockBlob",
                x_ms_meta_k=name,
                x_ms_access_tier=tier,
            )
            assert put.status == 201
        await ask("PUT", "/c01/a?comp=lease", x_ms_lease_action="acquire", x_ms_lease_duration=-1)
        url = "/c01?restype=container&comp=list"
        flat = await ask("GET", f"{url}&include=metadata,deleted&maxresults=3")
        assert flat.status == 200 and flat.headers["content-type"] == "application/xml"
        assert flat.texts("Blobs/Blob/Name") == ["a", "d/1", "d/2"]
        assert flat.texts("MaxResults") == ["3"] and flat.texts("Prefix") == []
        assert flat.texts("Blobs/Blob/Metadata/k") == ["a", "d/1", "d/2"]
        assert flat.texts("Blobs/Blob/Properties/Content-Length") == ["3"] * 3
        states = flat.texts("Blobs/Blob/Properties/LeaseState")
        assert states == ["leased", "available", "available"]
        assert flat.texts("Blobs/Blob/Properties/AccessTier") == ["Cool", "Hot", "Hot"]
        assert len(flat.texts("Blobs/Blob/Properties/AccessTierInferred")) == 2
        (marker,) = flat.texts("NextMarker")
        rest = await ask("GET", f"{url}&marker={marker}")
        assert rest.texts("Blobs/Blob/Name") == ["e"] and rest.texts("NextMarker") == [""]
        assert rest.texts("Blobs/Blob/Metadata") == []
        folded = await ask("GET", f"{url}&delimiter=/")
        assert folded.texts("Blobs/Blob/Name") == ["a", "e"]
        assert folded.texts("Blobs/BlobPrefix/Name") == ["d/"]
        for query, code in (
            ("maxresults=0", "OutOfRangeQueryParameterValue"),
            ("maxresults=-5", "OutOfRangeQueryParameterValue"),
            ("maxresults=x", "InvalidQueryParameterValue"),
            ("marker=x", "InvalidQueryParameterValue"),
            ("include=nothing", "InvalidQueryParameterValue"),
            ("include=snapshots&delimiter=/", "InvalidQueryParameterValue"),
        ):
            for refused in (await ask("GET", f"{url}&{query}"),):
                assert (refused.status, refused.headers["x-ms-error-code"]) == (400, code)
        assert len((await ask("GET", f"{url}&maxresults=99999")).texts("Blobs/Blob")) == 4

    run(scenario)


def test_containers_are_listed() -> None:
    """B-CLS-01, B-CLS-02, B-CLS-03."""

    async def scenario(ask: Server) -> None:
        for name in ("c03", "c01", "c02"):
            await ask("PUT", f"/{name}?restype=container", x_ms_meta_n=name)
        page = await ask("GET", "/?comp=list&maxresults=2&include=metadata")
        assert page.texts("Containers/Container/Name") == ["c01", "c02"]
        assert page.texts("Containers/Container/Metadata/n") == ["c01", "c02"]
        (marker,) = page.texts("NextMarker")
        page = await ask("GET", f"/?comp=list&marker={marker}")
        assert page.texts("Containers/Container/Name") == ["c03"]
        assert page.texts("Containers/Container/Metadata") == []
        assert page.texts("NextMarker") == [""]

    run(scenario)


def test_the_account() -> None:
    """B-SVC-01, B-SVC-02, B-SVC-05."""

    async def scenario(ask: Server) -> None:
        url = "/?restype=service&comp=properties"
        assert (await ask("PUT", url, CORS)).status == 202
        found = await ask("GET", url)
        assert found.texts("Cors/CorsRule/MaxAgeInSeconds") == ["5"]
        assert found.texts("Logging/Version") == ["1.0"]
        assert (await ask("PUT", url, b"<Other/>")).status == 400
        for target in ("/", "/c09", "/c09/b"):
            found = await ask("GET", f"{target}?restype=account&comp=properties")
            assert found.status == 200 and found.body == b""
            assert found.headers["x-ms-sku-name"] == "Standard_LRS"
            assert found.headers["x-ms-account-kind"] == "StorageV2"
            assert found.headers["x-ms-is-hns-enabled"] == "false"

    run(scenario)


def test_conditions_where_there_are_none() -> None:
    """B-CWR-11, B-CWR-12."""

    async def scenario(ask: Server) -> None:
        await ask("PUT", "/c01?restype=container")
        for method, target in (
            ("PUT", "/c02?restype=container"),
            ("GET", "/c01?restype=container&comp=list"),
            ("GET", "/c01?restype=container"),
            ("DELETE", "/c01?restype=container"),
        ):
            answer = await ask(method, target, If_None_Match='"0x1"')
            code = answer.headers["x-ms-error-code"]
            assert (answer.status, code) == (400, "ConditionHeadersNotSupported")
        waited = await ask(
            "GET", "/c01?restype=container", If_None_Match='"0x1"', x_strongroom_wait=1
        )
        assert waited.status == 200

    run(scenario)


def test_preflight_asks_for_no_credentials() -> None:
    """B-COR-02, B-COR-03."""

    async def scenario(ask: Server) -> None:
        asked = {"Origin": "http://a.example", "Access_Control_Request_Method": "GET"}
        refused = await ask("OPTIONS", "/c01/b", b"", **asked)
        code = refused.headers["x-ms-error-code"]
        assert (refused.status, code) == (403, "CorsPreflightFailure")
        await ask("PUT", "/?restype=service&comp=properties", CORS)
        for target in ("/", "/c01", "/c01/b?comp=list"):
            allowed = await ask("OPTIONS", target, b"", **asked)
            assert allowed.status == 200
            assert allowed.headers["access-control-allow-origin"] == "*"

    run(scenario)
