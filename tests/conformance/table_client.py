"""A client of the Table service: it signs by the rules of tables, and sends JSON.

Independent of the server's code on purpose. Source: "Authorize with Shared Key", Table service.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from email.utils import formatdate
from typing import Any
from urllib.parse import quote, unquote

from tests.conformance.answer import GUID, RFC1123, Answer
from tests.conformance.client import Client, Credential, Fields
from tests.conformance.sas import SV, at
from tests.conformance.sas import query as query_text
from tests.conformance.signing import mac

MINIMAL = "application/json;odata=minimalmetadata"
JSON_SENT = {
    "Accept": MINIMAL,
    "Content-Type": "application/json",
    "DataServiceVersion": "3.0",
}


class TableClient(Client):
    """A Client with SharedKey and SharedKeyLite of the Table service."""

    def fields(
        self, method: str, full: str, headers: Fields, body: bytes, scheme: str | None
    ) -> list[tuple[str, str]]:
        """All headers of a request, Authorization last."""
        fields = super().fields(method, full, headers, body, None)
        found = {name.lower(): value for name, value in fields}
        if scheme is None or "authorization" in found:
            return fields
        if "x-ms-date" not in found:
            found["x-ms-date"] = formatdate(usegmt=True)
            fields.append(("x-ms-date", found["x-ms-date"]))
        lines = [found["x-ms-date"], _resource(self.account, full)]
        if scheme == "SharedKey":
            head = [method, found.get("content-md5", ""), found.get("content-type", "")]
            lines = [*head, *lines]
        signed = mac(self.credential.key, "\n".join(lines))
        fields.append(("Authorization", f"{scheme} {self.account}:{signed}"))
        return fields

    def another(self, prefix: str | None = None) -> TableClient:
        """Return the same client on a connection of its own; `prefix` replaces the text before
        targets."""
        own = self.prefix if prefix is None else prefix
        return TableClient(self.port, self.credential, self.auth, own)

    @property
    def anonymous(self) -> TableClient:
        """A client without credentials, on a connection of its own."""
        return TableClient(self.port, self.credential, None, self.prefix)

    def post(
        self, target: str, document: object, headers: Fields = (), auth: str | None = ""
    ) -> Answer:
        """POST a JSON document."""
        given = {**JSON_SENT, **dict(headers)}
        return self.send("POST", target, given, json.dumps(document).encode(), auth)


def _resource(account: str, full: str) -> str:
    path, _, query = full.partition("?")
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if name.lower() == "comp":
            return f"/{account}{path}?comp={unquote(value)}"
    return f"/{account}{path}"


def entity(table: str, partition_key: str, row_key: str) -> str:
    """The target of an entity."""
    keys = (f"'{quote(key.replace(chr(39), chr(39) * 2), safe='')}'" for key in (
        partition_key, row_key))  # fmt: skip
    return "/{}(PartitionKey={},RowKey={})".format(table, *keys)


def query(table: str, **options: object) -> str:
    """Return the target of a query; `filter`, `top`, `select` etc. get a dollar sign."""
    dollar = ("filter", "top", "select", "format", "orderby", "skip")
    pairs = (
        f"{'$' * (name in dollar)}{name}={quote(str(value), safe='')}"
        for name, value in options.items()
    )
    text = "&".join(pairs)
    return f"/{table}()" + (f"?{text}" if text else "")


def expect_json(answer: Answer, status: int, code: str | None = None) -> Any:
    """Check status and error code, and return the document (of an error: the value of its
    message)."""
    found: Any = json.loads(answer.body) if answer.body else None
    seen = f"{answer.status} {answer.body[:600]!r}"
    assert answer.status == status, seen
    assert answer.code == code, seen
    assert GUID.fullmatch(answer["x-ms-request-id"]) and RFC1123.fullmatch(answer["Date"])
    if code is None:
        return found
    error = found["odata.error"]
    assert error["code"] == code, seen
    text: str = error["message"]["value"]
    return text


def insert(tables: Client, table: str, entity: Mapping[str, object]) -> None:
    """Insert Entity."""
    assert isinstance(tables, TableClient)
    expect_json(tables.post(f"/{table}", entity, {"Prefer": "return-no-content"}), 204)


def table_sas(credential: Credential, table: str, *, sp: str = "r", **fields: str) -> str:
    """A token for a table, of the newest version.

    Arguments:
        fields: `st`, `se` (an hour from now unless given), `si`, `spk`, `srk`, `epk`, `erk`...
    """
    found = {"sv": SV, "tn": table, "sp": sp, "se": at(3600), **fields}
    resource = f"/table/{credential.account}/{table.lower()}"
    names = ("sp", "st", "se", "CR", "si", "sip", "spr", "sv", "spk", "srk", "epk", "erk")
    values = {**found, "CR": resource}
    text = "\n".join(values.get(name, "") for name in names)
    return query_text({**found, "sig": mac(credential.key, text)})
