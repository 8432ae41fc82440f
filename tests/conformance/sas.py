"""Shared access signatures of every `sv`, made by the standard library alone.

`service_sas` and `account_sas` return the query string of a token. Fields are sent as given. A
field in `unsigned` replaces the sent value, but not the signed one. Source: "Create a service SAS",
"Create an account SAS".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from tests.conformance.client import Credential
from tests.conformance.signing import mac

SV = "2025-11-05"
_OVERRIDES = ("rscc", "rscd", "rsce", "rscl", "rsct")


def at(seconds: float) -> str:
    """Return the wall time `seconds` from now, in the form of tokens."""
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def query(fields: Mapping[str, str]) -> str:
    """Return a query string without empty fields."""
    return "&".join(f"{name}={quote(text, safe='')}" for name, text in fields.items() if text)


def service_sas(
    credential: Credential,
    container: str,
    blob: str | None = None,
    *,
    sp: str = "r",
    sv: str = SV,
    snapshot: str = "",
    version: str = "",
    unsigned: Mapping[str, str] | None = None,
    **fields: str,
) -> str:
    """A token for a container, or for one blob (its name decoded), or for one snapshot or version
    of it.

    Arguments:
        fields: `st`, `se` (an hour from now unless given), `si`, `sip`, `spr`, `sr`, `rscc`...
    """
    resource = f"/{credential.account}/{container}" + (f"/{blob}" if blob is not None else "")
    if sv >= "2015-02-21":
        resource = "/blob" + resource
    kind = "c" if blob is None else "bs" if snapshot else "bv" if version else "b"
    found = {"sv": sv, "sr": kind, "sp": sp, "se": at(3600), **fields}
    text = "\n".join(_service_lines(found, resource, snapshot or version))
    sent = {**found, "sig": mac(credential.key, text), **(unsigned or {})}
    return query(sent)


def _service_lines(found: Mapping[str, str], resource: str, snapshot: str) -> list[str]:
    sv = found["sv"]
    names = ["sp", "st", "se", "CR", "si"]
    if sv >= "2015-04-05":
        names += ["sip", "spr"]
    names += ["sv"]
    if sv >= "2018-11-09":
        names += ["sr", "TIME"]
    if sv >= "2020-12-06":
        names += ["ses"]
    if sv >= "2013-08-15":
        names += _OVERRIDES
    values = {**found, "CR": resource, "TIME": snapshot}
    return [values.get(name, "") for name in names]


def account_sas(
    credential: Credential,
    *,
    ss: str = "b",
    srt: str = "sco",
    sp: str = "rwdlac",
    sv: str = SV,
    unsigned: Mapping[str, str] | None = None,
    **fields: str,
) -> str:
    """A token for the account."""
    found = {"sv": sv, "ss": ss, "srt": srt, "sp": sp, "se": at(3600), **fields}
    names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"]
    if sv >= "2020-12-06":
        names.append("ses")
    lines = [credential.account, *(found.get(name, "") for name in names)]
    text = "".join(line + "\n" for line in lines)
    return query({**found, "sig": mac(credential.key, text), **(unsigned or {})})
