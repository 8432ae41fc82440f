"""Signatures of official client libraries: each is accepted, and none after a change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from strongroom.auth import canonical, sas_signature
from strongroom.auth.claims import SasClaim
from strongroom.auth.request import Service, Target
from strongroom.auth.sas import decode_query, parse_sas
from strongroom.auth.sas_signature import verify_signature
from strongroom.auth.shared_key import parse_authorization
from strongroom.errors.core import AUTHENTICATION_FAILED, StorageError
from tests.auth.signing import ACCOUNT, NAME, claim_of, is_owner, refused, request

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors.json").read_text())
TIME = "2020-01-02T03:04:05.1234567Z"
# The Value of the user delegation key with which the vector was made.
DELEGATION_KEY = ACCOUNT.keys[0]
TARGETS = {
    "blob service SAS": Target(Service.BLOB, NAME, "c1", "dir/b1.txt"),
    "blob snapshot SAS": Target(Service.BLOB, NAME, "c1", "b1", snapshot=TIME),
    "blob version SAS": Target(Service.BLOB, NAME, "c1", "b1", version_id=TIME),
    "container SAS with stored policy": Target(Service.BLOB, NAME, "c1", "any"),
    "container SAS encryption scope+ip": Target(Service.BLOB, NAME, "c1"),
    "account SAS": Target(Service.BLOB, NAME),
    "blob user delegation SAS": Target(Service.BLOB, NAME, "c1", "b1"),
    "queue SAS": Target(Service.QUEUE, NAME, "q1"),
    "share SAS": Target(Service.FILE, NAME, "s1", "any/file"),
    "file SAS": Target(Service.FILE, NAME, "s1", "d1/f1"),
    "table SAS with ranges": Target(Service.TABLE, NAME, "MyTable"),
}


def _request(vector: dict[str, Any], **changed: str) -> Any:
    parts = urlsplit(vector["url"])
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    headers = {**vector["headers"], "Authorization": vector["authorization"], **changed}
    return request(vector["method"], target, headers.items())


@pytest.mark.parametrize("vector", VECTORS["sharedkey"], ids=lambda v: f"{v['method']} {v['url']}")
class TestSharedKey:
    def test_a_form_of_the_string_to_sign_is_the_clients(self, vector: dict[str, Any]) -> None:
        sent = _request(vector)
        scheme = parse_authorization(vector["authorization"]).scheme
        forms = [canonical.DEFAULT_FORM, *canonical.other_forms(sent, NAME)]
        made = canonical.StringsToSign(scheme, Service(vector["service"]), sent, NAME)
        assert vector["string_to_sign"].encode() in map(made.of, forms)

    def test_the_request_is_accepted(self, vector: dict[str, Any]) -> None:
        target = Target(Service(vector["service"]), NAME)
        assert is_owner(claim_of(_request(vector), target))

    def test_a_changed_path_is_refused(self, vector: dict[str, Any]) -> None:
        path = urlsplit(vector["url"]).path
        changed = {**vector, "url": vector["url"].replace(path, f"{path}x")}
        with pytest.raises(StorageError) as caught:
            claim_of(_request(changed), Target(Service(vector["service"]), NAME))
        detail = refused(caught, AUTHENTICATION_FAILED)
        assert detail.startswith("The MAC signature found in the HTTP request '")


@pytest.mark.parametrize("vector", VECTORS["sas"], ids=lambda v: str(v["name"]))
class TestSas:
    def _parse(self, vector: dict[str, Any], token: str | None = None) -> Any:
        target = TARGETS[vector["name"]]
        return parse_sas(decode_query(token or vector["token"]), target.service), target

    def _verify(self, vector: dict[str, Any], token: str | None = None) -> SasClaim:
        sas, target = self._parse(vector, token)
        return verify_signature(sas, ACCOUNT, target, (DELEGATION_KEY,))

    def test_the_string_to_sign_is_the_clients(self, vector: dict[str, Any]) -> None:
        sas, target = self._parse(vector)
        assert sas_signature.string_to_sign(sas, target) == vector["string_to_sign"]

    def test_the_signature_is_accepted(self, vector: dict[str, Any]) -> None:
        claim = self._verify(vector)
        assert (claim.account, claim.sas, claim.target) == (NAME, *self._parse(vector))

    def test_each_changed_field_is_refused(self, vector: dict[str, Any]) -> None:
        pairs = parse_qsl(vector["token"], keep_blank_values=True)
        for index, (name, value) in enumerate(pairs):
            for other in _others(name, value):
                changed = [*pairs[:index], (name, other), *pairs[index + 1 :]]
                text = "&".join(f"{key}={quote(item, safe='')}" for key, item in changed)
                with pytest.raises(StorageError) as caught:
                    self._verify(vector, text)
                refused(caught, AUTHENTICATION_FAILED)

    def test_another_resource_is_refused(self, vector: dict[str, Any]) -> None:
        sas, target = self._parse(vector)
        other = Target(target.service, NAME, "elsewhere", target.blob, TIME, None)
        if vector["name"] == "account SAS":
            other = Target(target.service, "anotheraccount")
        with pytest.raises(StorageError) as caught:
            verify_signature(sas, ACCOUNT, other, (DELEGATION_KEY,))
        refused(caught, AUTHENTICATION_FAILED)


def _others(name: str, value: str) -> list[str]:
    """Other values of a field: well formed where that is needed to reach the signature."""
    known = {
        "sp": ["r", "w", "l", "raud"],
        "sr": ["b", "c", "bs", "bv", "f", "s"],
        "sv": ["2018-11-09", "2019-12-12", "2025-07-05", "2026-10-07"],
        "spr": ["https"],
        "ss": ["bq", "q"],
        "srt": ["s", "o"],
        "sip": ["168.1.5.60", "0.0.0.0-255.255.255.255"],
        "st": ["2019-01-01", ""],
        "se": ["2100-01-01T00:00:00Z"],
    }
    candidates = known.get(name, [f"{value}x", f"x{value}"])
    return [other for other in candidates if other != value]
