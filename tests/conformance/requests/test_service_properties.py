"""Get and Set Blob Service Properties, Get Account Information: rules B-SVC-*."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.answer import Answer, expect, texts
from tests.conformance.client import Client
from tests.conformance.running import Running

TARGET = "/?restype=service&comp=properties"
SECTIONS = (
    "Logging",
    "HourMetrics",
    "MinuteMetrics",
    "Cors",
    "DeleteRetentionPolicy",
    "StaticWebsite",
)
LOGGING = (
    "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>"
    "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging>"
)
HOUR = (
    "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>"
    "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>"
)
VERSION = "<DefaultServiceVersion>2020-10-02</DefaultServiceVersion>"


def rule(
    origins: str = "http://a.example", headers: str = "x-ms-meta-a", exposed: str = "x-ms-*"
) -> str:
    """One CorsRule."""
    return (
        f"<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>GET,PUT"
        f"</AllowedMethods><AllowedHeaders>{headers}</AllowedHeaders><ExposedHeaders>{exposed}"
        "</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>"
    )


def body(*sections: str) -> bytes:
    """A body of Set Blob Service Properties."""
    inner = "".join(sections)
    text = f"<StorageServiceProperties>{inner}</StorageServiceProperties>"
    return f'<?xml version="1.0" encoding="utf-8"?>{text}'.encode()


def put(account: Client, *sections: str) -> Answer:
    """Set Blob Service Properties."""
    return account.put(TARGET, {"Content-Type": "application/xml"}, body(*sections))


def test_what_a_new_account_has(account: Client) -> None:
    """B-SVC-01."""
    answer = expect(account.get(TARGET), 200)
    assert answer["Content-Type"] == "application/xml"
    assert answer.xml.tag == "StorageServiceProperties"
    assert [child.tag for child in answer.xml] == list(SECTIONS)
    assert texts(answer.xml, "Logging/Read") == ["false"]
    assert texts(answer.xml, "HourMetrics/Enabled") in (["false"], ["true"])
    assert texts(answer.xml, "DeleteRetentionPolicy/Enabled") == ["false"]
    assert texts(answer.xml, "StaticWebsite/Enabled") == ["false"]
    assert texts(answer.xml, "Cors/CorsRule") == []


def test_what_was_set_is_read_back(account: Client) -> None:
    """B-SVC-01 B-SVC-02 B-SVC-04: logging and metrics are kept."""
    assert expect(put(account, LOGGING, HOUR, VERSION), 202).body == b""
    root = expect(account.get(TARGET), 200).xml
    assert texts(root, "Logging/Delete") == ["true"]
    assert texts(root, "Logging/RetentionPolicy/Days") == ["7"]
    assert texts(root, "HourMetrics/IncludeAPIs") == ["true"]
    assert texts(root, "DefaultServiceVersion") == ["2020-10-02"]
    assert [child.tag for child in root] == [*SECTIONS[:4], "DefaultServiceVersion", *SECTIONS[4:]]


def test_sections_that_are_not_sent_stay(account: Client) -> None:
    """B-SVC-02."""
    expect(put(account, LOGGING), 202)
    expect(put(account, f"<Cors>{rule()}{rule('http://b.example')}</Cors>"), 202)
    expect(put(account), 202)
    root = expect(account.get(TARGET), 200).xml
    assert texts(root, "Logging/Delete") == ["true"]
    origins = texts(root, "Cors/CorsRule/AllowedOrigins")
    assert origins == ["http://a.example", "http://b.example"]
    expect(put(account, "<Cors/>"), 202)
    root = expect(account.get(TARGET), 200).xml
    assert texts(root, "Cors/CorsRule") == []
    assert texts(root, "Logging/Delete") == ["true"]


def test_properties_survive_a_restart(tmp_path: Path) -> None:
    """B-SVC-02."""
    for number in range(2):
        running = Running(tmp_path / "data")
        client = running.client()
        if not number:
            expect(put(client, LOGGING, f"<Cors>{rule()}</Cors>"), 202)
        root = expect(client.get(TARGET), 200).xml
        assert texts(root, "Logging/Write") == ["true"]
        assert texts(root, "Cors/CorsRule/AllowedOrigins") == ["http://a.example"]
        client.close()
        running.stop()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text",
        b"<StorageServiceProperties>",
        b"<Other/>",
        body("<Unknown/>"),
        body("<Cors>" + rule() * 6 + "</Cors>"),
    ],
)
def test_documents_that_are_none(account: Client, data: bytes) -> None:
    """B-SVC-03."""
    expect(put(account, LOGGING), 202)
    refused = account.put(TARGET, (), data)
    assert refused.status == 400
    assert refused.code in ("InvalidXmlDocument", "UnsupportedXmlNode"), refused
    if b"Unknown" not in data:
        expect(refused, 400, "InvalidXmlDocument")
    assert texts(account.get(TARGET).xml, "Logging/Delete") == ["true"]


LITERALS = ",".join(f"h{number}" for number in range(65))


@pytest.mark.parametrize(
    "section",
    [
        LOGGING.replace("<Days>7<", "<Days>0<"),
        LOGGING.replace("<Days>7<", "<Days>366<"),
        LOGGING.replace("<Days>7<", "<Days>x<"),
        LOGGING.replace("<Read>false<", "<Read>no<"),
        "<DefaultServiceVersion>latest</DefaultServiceVersion>",
        f"<Cors>{rule(headers=LITERALS)}</Cors>",
        f"<Cors>{rule(headers='a*,b*,c*')}</Cors>",
        f"<Cors>{rule(exposed='a*,b*,c*')}</Cors>",
        f"<Cors>{rule(origins='http://' + 'o' * 250)}</Cors>",
        f"<Cors>{rule(origins=','.join(f'http://{n:0240}' for n in range(9)))}</Cors>",
        f"<Cors>{rule().replace('GET,PUT', 'GET,FETCH')}</Cors>",
        f"<Cors>{rule().replace('>60<', '>-1<')}</Cors>",
    ],
)
def test_values_that_are_none(account: Client, section: str) -> None:
    """B-SVC-03."""
    expect(put(account, section), 400, "InvalidXmlNodeValue")
    assert texts(account.get(TARGET).xml, "Cors/CorsRule") == []


def test_the_bounds_themselves(account: Client) -> None:
    """B-SVC-03: what is just within them is taken."""
    for section in (
        LOGGING.replace("<Days>7<", "<Days>365<"),
        f"<Cors>{rule(headers=LITERALS.rpartition(',')[0])}</Cors>",
        f"<Cors>{rule(headers='a*,b*')}</Cors>",
        f"<Cors>{rule(origins='http://' + 'o' * 249)}</Cors>",
        f"<Cors>{rule() * 5}</Cors>",
    ):
        expect(put(account, section), 202)


@pytest.mark.parametrize(
    ("section", "name"),
    [
        ("<StaticWebsite><Enabled>true</Enabled></StaticWebsite>", "StaticWebsite"),
    ],
)
def test_what_is_not_served(account: Client, section: str, name: str) -> None:
    """B-SVC-04."""
    answer = expect(put(account, LOGGING, section), 501, "NotImplemented")
    assert name in answer.error["Message"]
    assert texts(account.get(TARGET).xml, "Logging/Delete") == ["false"]
    expect(put(account, section.replace("true", "false")), 202)


@pytest.mark.parametrize("depth", ["", "{c}", "{c}/b"])
def test_account_information(
    client: Client, container: str, new_name: Callable[[], str], depth: str
) -> None:
    """B-SVC-05: the container and the blob need not exist."""
    for name, method in itertools.product((container, new_name()), ("GET", "HEAD")):
        target = f"/{depth.replace('{c}', name)}?restype=account&comp=properties"
        answer = expect(client.send(method, target), 200)
        assert answer.body == b""
        assert answer["x-ms-sku-name"] == "Standard_LRS"
        assert answer["x-ms-account-kind"] == "StorageV2"
        assert answer["x-ms-is-hns-enabled"] == "false"
