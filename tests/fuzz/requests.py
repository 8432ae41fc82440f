"""Requests with one error or several: valid requests, and random changes of them.

Must not live here: sending (channel.py). The hostile values do not make the server wait or contact
another machine. Both are legitimate and slow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import quote

from hypothesis import strategies as st

from tests.fuzz.channel import Fields, FuzzRequest

LEASE_ID = "00000000-1111-2222-3333-444444444444"
SNAPSHOT = "2020-01-01T00:00:00.0000000Z"
ACL = (
    b"<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Start>2020-01-01</Start>"
    b"<Expiry>2040-01-01T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy>"
    b"</SignedIdentifier></SignedIdentifiers>"
)
BLOCK_LIST = b"<BlockList><Latest>QUFBQQ==</Latest><Committed>QkJCQg==</Committed></BlockList>"
RETENTION = b"<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy>"
METRICS = b"<Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>"
TAGS = (
    b"<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag>"
    b"<Tag><Key>b</Key><Value>2 3</Value></Tag></TagSet></Tags>"
)
SERVICE_PROPERTIES = (
    b'<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties><Logging>'
    b"<Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>"
    b"%(r)s</Logging><HourMetrics>%(m)s%(r)s</HourMetrics><MinuteMetrics>%(m)s%(r)s"
    b"</MinuteMetrics><Cors><CorsRule><AllowedOrigins>http://*.example.com,*</AllowedOrigins>"
    b"<AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-*</AllowedHeaders>"
    b"<ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>9</MaxAgeInSeconds></CorsRule>"
    b"</Cors><DefaultServiceVersion>2021-12-02</DefaultServiceVersion><DeleteRetentionPolicy>"
    b"<Enabled>false</Enabled></DeleteRetentionPolicy><StaticWebsite><Enabled>false</Enabled>"
    b"</StaticWebsite></StorageServiceProperties>"
) % {b"r": RETENTION, b"m": METRICS}

CONTAINERS = ("fuzz-a", "fuzz-b")
BLOBS = ("plain", "blocks", "a/deep", "a/deeper/still", "leased")
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of request; `place` is `` (the account), `c` (a container) or `b` (a blob)."""

    method: str
    place: str
    query: Pairs = ()
    headers: Pairs = ()
    body: bytes = b""


_C = ("restype", "container")
_S = (("restype", "service"), ("comp", "properties"))
_BLOCK = (("comp", "block"), ("blockid", "QUFBQQ=="))
_LEASE = (("comp", "lease"),)


def _lease(action: str, *headers: tuple[str, str]) -> Pairs:
    return (("x-ms-lease-action", action), *headers)


_LEASES = (
    _lease("acquire", ("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", LEASE_ID)),
    _lease("renew", ("x-ms-lease-id", LEASE_ID)),
    _lease("change", ("x-ms-lease-id", LEASE_ID), ("x-ms-proposed-lease-id", LEASE_ID)),
    _lease("release", ("x-ms-lease-id", LEASE_ID)),
    _lease("break", ("x-ms-lease-break-period", "5")),
)
FORMS = (
    Form("GET", "", (("comp", "list"), ("include", "metadata"), ("maxresults", "2"))),
    Form("GET", "", _S),
    Form("PUT", "", _S, (), SERVICE_PROPERTIES),
    Form("GET", "", (("restype", "account"), ("comp", "properties"))),
    Form("GET", "", (("restype", "service"), ("comp", "stats"))),
    Form("POST", "", (("restype", "service"), ("comp", "userdelegationkey")), (), b"<KeyInfo/>"),
    Form("PUT", "c", (_C,), (("x-ms-meta-a", "b"), ("x-ms-blob-public-access", "blob"))),
    Form("DELETE", "c", (_C,), (("x-ms-lease-id", LEASE_ID),)),
    Form("GET", "c", (_C,)),
    Form("HEAD", "c", (_C, ("comp", "metadata"))),
    Form("PUT", "c", (_C, ("comp", "metadata")), (("x-ms-meta-x", "y"),)),
    Form("GET", "c", (_C, ("comp", "acl"))),
    Form("PUT", "c", (_C, ("comp", "acl")), (("x-ms-blob-public-access", "container"),), ACL),
    Form("GET", "c", (_C, ("comp", "list"), ("prefix", "a"), ("include", "snapshots,metadata"))),
    Form("GET", "c", (_C, ("comp", "list"), ("delimiter", "/"), ("maxresults", "1"))),
    Form("GET", "", (("comp", "blobs"), ("where", "a='1'"), ("maxresults", "2"))),
    Form("GET", "c", (_C, ("comp", "blobs"), ("where", "a>='1' AND b<'3'"), ("marker", "AQ=="))),
    *(Form("PUT", "c", (_C, *_LEASE), headers) for headers in _LEASES),
    *(Form("PUT", "b", _LEASE, headers) for headers in _LEASES),
    Form("PUT", "b", (), (("x-ms-blob-type", "BlockBlob"), ("x-ms-meta-a", "b")), b"body"),
    Form("PUT", "b", (), (("x-ms-blob-type", "AppendBlob"),)),
    Form("GET", "b", (), (("Range", "bytes=1-2"), ("x-ms-range-get-content-md5", "true"))),
    Form("GET", "b", (("snapshot", SNAPSHOT),), (("If-None-Match", '"0x8D0"'),)),
    Form("HEAD", "b", (), (("If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"),)),
    Form("GET", "b", (("comp", "metadata"),)),
    Form("PUT", "b", (("comp", "metadata"),), (("x-ms-meta-n", "v"), ("If-Match", "*"))),
    Form("PUT", "b", (("comp", "properties"),), (("x-ms-blob-content-type", "a/b"),)),
    Form("DELETE", "b", (), (("x-ms-delete-snapshots", "include"),)),
    Form("PUT", "b", (("comp", "snapshot"),), (("x-ms-meta-s", "t"),)),
    Form("PUT", "b", _BLOCK, (("x-ms-content-crc64", "AAAAAAAAAAA="),), b"block"),
    Form("PUT", "b", _BLOCK, (), b"block"),
    Form("PUT", "b", (("comp", "blocklist"),), (("x-ms-blob-content-md5", "AA=="),), BLOCK_LIST),
    Form("PUT", "b", (("comp", "blocklist"),), (), b"<BlockList/>"),
    Form("GET", "b", (("comp", "blocklist"), ("blocklisttype", "all"))),
    Form("PUT", "b", (), (("x-ms-copy-source", "{blob}"),)),
    Form("PUT", "b", (), (("x-ms-copy-source", "{blob}"), ("x-ms-requires-sync", "true"))),
    Form("PUT", "b", (), (("x-ms-copy-source", "{blob}"), ("x-ms-blob-type", "BlockBlob"))),
    Form("PUT", "b", (("comp", "block"), ("blockid", "QQ==")), (("x-ms-copy-source", "{blob}"),)),
    Form("PUT", "b", (("comp", "copy"), ("copyid", LEASE_ID)), (("x-ms-copy-action", "abort"),)),
    Form("PUT", "b", (("comp", "tags"),), (("x-ms-blob-if-match", "*"),), TAGS),
    Form("GET", "b", (("comp", "tags"),), (("x-ms-if-tags", "a='1'"),)),
    Form("PUT", "b", (("comp", "tier"),), (("x-ms-access-tier", "Cool"),)),
    Form(
        "OPTIONS",
        "b",
        (),
        (("Origin", "http://a.example.com"), ("Access-Control-Request-Method", "GET")),
    ),
)
METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "MERGE", "TRACE", "put")
HEADERS = tuple(sorted({
    "Accept", "Authorization", "Cache-Control", "Content-Encoding", "Content-Language",
    "Content-MD5", "Content-Type", "Cookie", "Date", "Host", "If-Match", "If-Modified-Since",
    "If-None-Match", "If-Unmodified-Since", "Origin", "Range", "Upgrade", "User-Agent",
    "Access-Control-Request-Headers", "Access-Control-Request-Method", "x-ms-access-tier",
    "x-ms-blob-cache-control", "x-ms-blob-content-disposition", "x-ms-blob-content-encoding",
    "x-ms-blob-content-language", "x-ms-blob-content-length", "x-ms-blob-content-md5",
    "x-ms-blob-content-type", "x-ms-blob-public-access", "x-ms-blob-sequence-number",
    "x-ms-blob-type", "x-ms-client-request-id", "x-ms-content-crc64", "x-ms-copy-action",
    "x-ms-copy-source", "x-ms-date", "x-ms-default-encryption-scope", "x-ms-delete-snapshots",
    "x-ms-encryption-key", "x-ms-expiry-option", "x-ms-if-tags", "x-ms-lease-action",
    "x-ms-lease-break-period", "x-ms-lease-duration", "x-ms-lease-id", "x-ms-meta-",
    "x-ms-meta-Name", "x-ms-meta-1", "x-ms-proposed-lease-id", "x-ms-range",
    "x-ms-range-get-content-crc64", "x-ms-range-get-content-md5", "x-ms-rehydrate-priority",
    "x-ms-requires-sync", "x-ms-snapshot", "x-ms-source-content-md5", "x-ms-source-if-match",
    "x-ms-source-if-modified-since", "x-ms-source-if-none-match", "x-ms-source-lease-id",
    "x-ms-source-range", "x-ms-tags", "x-ms-version", "x-strongroom-wait",
}))  # fmt: skip
PARAMETERS = (
    "action", "api-version", "blockid", "blocklisttype", "comp", "copyid", "delimiter", "include",
    "marker", "maxresults", "prefix", "prevsnapshot", "restype", "showonly", "snapshot",
    "timeout", "versionid", "where", "COMP", "Restype", "",
)  # fmt: skip
COMPS = (
    "acl", "appendblock", "batch", "block", "blocklist", "blobs", "copy", "expiry",
    "incrementalcopy", "lease", "legalhold", "list", "metadata", "page", "pagelist", "properties",
    "query", "seal", "snapshot", "stats", "tags", "tier", "undelete", "userdelegationkey",
)  # fmt: skip
INJECTION = "a\r\nX-Injected: yes\r\n\r\n<b>"
HOSTILE = (
    "", " ", "0", "-0", "-1", "+1", "1e9", "1_000", "0x10", "9" * 19, "9" * 20, "9" * 400,
    "9" * 5000, "18446744073709551616", "\u0661\u0662", "\u00b2", "\u2167", "NaN", "inf", "*",
    '"', '""', '"*"', 'W/"x"', '"a","b"', '"a', ",", ",,,", ";", ":", "=", "==", "&", "?", "%",
    "%00", "%0d%0aX-Injected: yes", "%ff", "%zz", "bytes=", "bytes=0-", "bytes=-1", "bytes=-0",
    "bytes=9-1", "bytes=0-0,2-3", "bytes=0-99999999999999999", f"bytes={'9' * 30}-", "bytes=a-b",
    "Sun, 31 Feb 2026 00:00:00 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", "Sat, 00 Jan 2000",
    "Fri, 31 Dec 9999 23:59:59 GMT", "Wed, 01 Jan 0000 00:00:00 GMT", "2000-01-01",
    "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z", "2026-13-01T25:61:61.0000000Z",
    SNAPSHOT, "0001-01-01T00:00:00.0000000Z", "9999-12-31T23:59:60.0000000Z", "true", "false",
    "TRUE", "null", "\x01", "\x1b[0m", "\x7f", "\t", "\u00e9", "\u0080", "\u0085", "\u2028", "☃",
    "😀", "\ufeff", "\ufffe", "a" * 300, "a" * 5000, "é" * 2000, "../..", "..\\..", "//", "\\",
    "{", LEASE_ID, LEASE_ID.replace("-", ""), "{" + LEASE_ID + "}", "(" + LEASE_ID, "QUFBQQ==",
    "QUFBQQ", "!!!!", "AA==", "A" * 88, "A" * 92, "AAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAA==",
    "BlockBlob", "PageBlob", "acquire", "break", "all", "committed", "include", "only", "abort",
    "container", "blob", "service", "account", "list", "metadata", "snapshots,uncommittedblobs",
    "copy,versions", "SharedKey", "SharedKey devstoreaccount1:", "SharedKey a:b:c", "Bearer x",
    "SharedKeyLite devstoreaccount1:AAAA", "Hot", "a=b&c=d", "{blob}", "http://", "http://[::1",
    "http://127.0.0.1:1/x/y", "http://127.0.0.1:99999/x", "http://127.0.0.1:0/x", "ftp://x/y",
    "http://a:b@127.0.0.1/x", "/relative", "2009-09-18", "2099-12-31", "1.0", "host:port",
    "<script>", "&amp;", "]]>", "' or 1=1 --", "fuzz-a", "/devstoreaccount1/fuzz-a",
)  # fmt: skip

visible = st.text(
    st.characters(blacklist_characters="\r\n\0", blacklist_categories=["Cs"]), max_size=20
)
hostile = st.one_of(st.sampled_from(HOSTILE), st.sampled_from(HOSTILE), visible)
words = st.one_of(hostile, st.sampled_from(COMPS), st.just(INJECTION))


def _may_wait(name: str, value: str) -> bool:
    """Whether the value makes the server wait."""
    return name.lower() == "x-strongroom-wait" and value.strip().isdecimal()


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a request: of its `part`, at a place chosen by `pick`."""

    part: str
    pick: int
    name: str
    value: str


changes = st.lists(
    st.one_of(
        st.builds(Change, st.just("header"), st.just(0), st.sampled_from(HEADERS), hostile),
        st.builds(Change, st.just("query"), st.just(0), st.sampled_from(PARAMETERS), words),
        st.builds(
            Change,
            st.sampled_from(["value", "parameter", "drop", "double", "method", "path"]),
            st.integers(0, 99),
            st.just(""),
            words,
        ),
    ),
    max_size=4,
)


def apply(form: Form, change: Change) -> Form:
    """Return the form with one change."""
    headers, query, pick = form.headers, form.query, change.pick
    if change.part == "header":
        kept = tuple(pair for pair in headers if pair[0].lower() != change.name.lower())
        return replace(form, headers=(*kept, (change.name, change.value)))
    if change.part == "query":
        return replace(form, query=(*query, (change.name, change.value)))
    if change.part == "method":
        return replace(form, method=METHODS[pick % len(METHODS)])
    if change.part == "path":
        return replace(form, place=change.value)
    if change.part == "value" and headers:
        return replace(form, headers=_changed(headers, pick, change.value))
    if change.part == "parameter" and query:
        return replace(form, query=_changed(query, pick, change.value))
    if change.part == "drop" and headers:
        at = pick % len(headers)
        return replace(form, headers=headers[:at] + headers[at + 1 :])
    if change.part == "double" and headers:
        return replace(form, headers=(*headers, headers[pick % len(headers)]))
    return form


def _changed(pairs: Pairs, pick: int, value: str) -> Pairs:
    at = pick % len(pairs)
    return (*pairs[:at], (pairs[at][0], value), *pairs[at + 1 :])


def target(form: Form, account: str, container: str, blob: str, raw: bool = False) -> str:
    """The request target of a form.

    Arguments:
        raw: whether to leave the values unencoded.
    """
    places = {"": "", "c": f"/{container}", "b": f"/{container}/{blob}"}
    path = places.get(form.place)
    if path is None:
        path = "/" + (form.place if raw else quote(form.place, safe="/"))
    pairs = form.query
    if not raw:
        pairs = tuple((quote(name, safe=""), quote(value, safe="")) for name, value in pairs)
    query = "&".join(f"{name}={value}" for name, value in pairs)
    found = f"/{account}{path or '/'}" + (f"?{query}" if query else "")
    return found.replace("\r", "").replace("\n", "")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A kind of request, its changes, and its encoding.

    `raw` leaves the target unencoded. `latin1` sends headers in that encoding if possible.
    """

    form: Form
    changes: tuple[Change, ...]
    container: str
    blob: str
    raw: bool
    latin1: bool
    scheme: str | None

    def sent(self, endpoint: str, token: str) -> FuzzRequest:
        """The request, at `http://HOST:PORT/ACCOUNT`; `token` reads its copy source."""
        form = self.form
        for change in self.changes:
            form = apply(form, change)
        account = endpoint.rpartition("/")[2]
        return FuzzRequest(
            form.method,
            target(form, account, self.container, self.blob, self.raw),
            sendable(form.headers, f"{endpoint}/{self.container}/{self.blob}?{token}"),
            form.body,
            self.scheme,
            self.latin1,
        )


recipes = st.builds(
    Recipe,
    st.sampled_from(FORMS),
    changes.map(tuple),
    st.sampled_from(CONTAINERS),
    st.sampled_from(BLOBS),
    st.integers(0, 7).map(lambda number: number == 7),
    st.booleans(),
    st.sampled_from(["SharedKey", "SharedKey", "SharedKey", "SharedKeyLite", None]),
)


def sendable(headers: Pairs, source: str) -> Fields:
    """Return headers without line ends, which would end the header, and with a URL in place of its
    mark."""
    found = []
    for name, value in headers:
        text = value.replace("{blob}", source).replace("\r", "").replace("\n", "")
        found.append((name, "61" if _may_wait(name, text) else text))
    return tuple(found)
