"""Service properties and service statistics as XML.

Limits of CORS rules: semantics/core/cors.py. Sources: "Set Blob Service Properties", "Get Blob
Service Properties", "Get Blob Service Stats".
"""

from __future__ import annotations

import re
from typing import Final

from strongroom import limits
from strongroom.service_properties import (
    CorsRule,
    Logging,
    Metrics,
    RetentionPolicy,
    ServiceProperties,
    StaticWebsite,
)
from strongroom.values import rfc1123
from strongroom.wire.core import xml

_VERSION: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INTEGER: Final = re.compile(r"[0-9]{1,10}")
_SHARED: Final = ("Logging", "HourMetrics", "MinuteMetrics", "Cors")
_BLOB: Final = ("DefaultServiceVersion", "DeleteRetentionPolicy", "StaticWebsite")


def read_shared_properties(body: bytes) -> ServiceProperties:
    """For queues and tables, without the blob sections."""
    return _read(body, _SHARED)


def read_file_properties(body: bytes) -> ServiceProperties:
    """For files: without logging, with a section on SMB."""
    return _read(body, (*_SHARED[1:], "ProtocolSettings"))


def read_service_properties(body: bytes) -> ServiceProperties:
    """The sections in a body; the others are None."""
    return _read(body, (*_SHARED, *_BLOB))


def _read(body: bytes, allowed: tuple[str, ...]) -> ServiceProperties:
    root = xml.read(body, "StorageServiceProperties")
    root.only(*allowed)
    sections = {child.name: child for child in root.children}

    def section(name: str) -> xml.Element | None:
        return sections.get(name)

    return ServiceProperties(
        logging=None if (found := section("Logging")) is None else _logging(found),
        hour_metrics=None if (found := section("HourMetrics")) is None else _metrics(found),
        minute_metrics=None if (found := section("MinuteMetrics")) is None else _metrics(found),
        cors=None if (found := section("Cors")) is None else _cors(found),
        default_service_version=_default_version(section("DefaultServiceVersion")),
        delete_retention=(
            None if (found := section("DeleteRetentionPolicy")) is None else _retention(found)
        ),
        static_website=(None if (found := section("StaticWebsite")) is None else _website(found)),
        smb_multichannel=_multichannel(section("ProtocolSettings")),
    )


def _logging(element: xml.Element) -> Logging:
    element.only("Version", "Delete", "Read", "Write", "RetentionPolicy")
    return Logging(
        version=element.require("Version").text.strip(),
        delete=_boolean(element.require("Delete")),
        read=_boolean(element.require("Read")),
        write=_boolean(element.require("Write")),
        retention=_retention(element.require("RetentionPolicy")),
    )


def _metrics(element: xml.Element) -> Metrics:
    element.only("Version", "Enabled", "IncludeAPIs", "RetentionPolicy")
    enabled = _boolean(element.require("Enabled"))
    include_apis = element.child("IncludeAPIs")
    if enabled and include_apis is None:
        raise xml.missing_node("IncludeAPIs")
    retention = element.child("RetentionPolicy")
    version = element.child("Version")
    return Metrics(
        version="1.0" if version is None else version.text.strip(),
        enabled=enabled,
        include_apis=None if include_apis is None else _boolean(include_apis),
        retention=RetentionPolicy() if retention is None else _retention(retention),
    )


def _retention(element: xml.Element) -> RetentionPolicy:
    element.only("Enabled", "Days", "AllowPermanentDelete")
    enabled = _boolean(element.require("Enabled"))
    days = element.child("Days")
    if enabled and days is None:
        raise xml.missing_node("Days")
    permanent = element.child("AllowPermanentDelete")
    return RetentionPolicy(
        enabled=enabled,
        days=None if days is None else _integer(days, 1, limits.RETENTION_DAYS_MAX),
        allow_permanent_delete=None if permanent is None else _boolean(permanent),
    )


def _cors(element: xml.Element) -> tuple[CorsRule, ...]:
    rules = []
    for child in element.children:
        if child.name != "CorsRule":
            raise xml.invalid_document(f"The element {child.name[:64]} is not expected.")
        child.only(
            *("AllowedOrigins", "AllowedMethods", "AllowedHeaders", "ExposedHeaders"),
            "MaxAgeInSeconds",
        )
        rules.append(
            CorsRule(
                allowed_origins=_words(child.require("AllowedOrigins")),
                allowed_methods=_words(child.require("AllowedMethods")),
                allowed_headers=_words(child.child("AllowedHeaders")),
                exposed_headers=_words(child.child("ExposedHeaders")),
                max_age_s=_integer(child.require("MaxAgeInSeconds"), 0, 2**31 - 1),
            )
        )
    return tuple(rules)


def _website(element: xml.Element) -> StaticWebsite:
    element.only("Enabled", "IndexDocument", "ErrorDocument404Path", "DefaultIndexDocumentPath")
    return StaticWebsite(
        enabled=_boolean(element.require("Enabled")),
        index_document=_text(element.child("IndexDocument")),
        error_document_404_path=_text(element.child("ErrorDocument404Path")),
        default_index_document_path=_text(element.child("DefaultIndexDocumentPath")),
    )


def _multichannel(settings: xml.Element | None) -> bool | None:
    """Whether SMB Multichannel is enabled; None when the document does not contain it."""
    element = settings
    for name in ("SMB", "Multichannel", "Enabled"):
        if element is None:
            return None
        element.only(name)
        element = element.child(name)
    return None if element is None else _boolean(element)


def _default_version(element: xml.Element | None) -> str | None:
    text = _text(element)
    if text is not None and not _VERSION.fullmatch(text):
        raise xml.invalid_node("DefaultServiceVersion", text)
    return text


def _text(element: xml.Element | None) -> str | None:
    return None if element is None else element.text.strip() or None


def _boolean(element: xml.Element) -> bool:
    text = element.text.strip().lower()
    if text not in ("true", "false"):
        raise xml.invalid_node(element.name, element.text)
    return text == "true"


def _integer(element: xml.Element, minimum: int, maximum: int) -> int:
    text = element.text.strip()
    if not _INTEGER.fullmatch(text) or not minimum <= int(text) <= maximum:
        reason = f"The value must be a number from {minimum} to {maximum}."
        raise xml.invalid_node(element.name, element.text, reason)
    return int(text)


def _words(element: xml.Element | None) -> tuple[str, ...]:
    parts = () if element is None else element.text.split(",")
    return tuple(word for word in (part.strip() for part in parts) if word)


def write_service_properties(properties: ServiceProperties) -> bytes:
    """The answer of Get Blob Service Properties: the sections that are not None."""
    cors = properties.cors
    delete, website = properties.delete_retention, properties.static_website
    hour, minute = properties.hour_metrics, properties.minute_metrics
    sections = (
        "" if properties.logging is None else _logging_xml(properties.logging),
        "" if hour is None else _metrics_xml("HourMetrics", hour),
        "" if minute is None else _metrics_xml("MinuteMetrics", minute),
        "" if cors is None else _cors_xml(cors),
        xml.optional_element("DefaultServiceVersion", properties.default_service_version),
        "" if delete is None else _retention_xml("DeleteRetentionPolicy", delete),
        "" if website is None else _website_xml(website),
        _protocols_xml(properties.smb_multichannel),
    )
    inner = "".join(sections)
    return f"{xml.DECLARATION}<StorageServiceProperties>{inner}</StorageServiceProperties>".encode()


def write_service_stats(status: str, last_sync: int | None) -> bytes:
    """The answer of Get Blob Service Stats.

    Arguments:
        status: live, bootstrap or unavailable.
        last_sync: the tick up to which the secondary is in sync; None = unknown.
    """
    time = None if last_sync is None else rfc1123(last_sync)
    return (
        f"{xml.DECLARATION}<StorageServiceStats><GeoReplication>{xml.element('Status', status)}"
        f"{xml.element('LastSyncTime', time)}</GeoReplication></StorageServiceStats>"
    ).encode()


def _flag(name: str, value: bool | None) -> str:
    return "" if value is None else f"<{name}>{'true' if value else 'false'}</{name}>"


def _retention_xml(name: str, policy: RetentionPolicy) -> str:
    days = None if policy.days is None else str(policy.days)
    return (
        f"<{name}>{_flag('Enabled', policy.enabled)}{xml.optional_element('Days', days)}"
        f"{_flag('AllowPermanentDelete', policy.allow_permanent_delete)}</{name}>"
    )


def _logging_xml(logging: Logging) -> str:
    return (
        f"<Logging>{xml.element('Version', logging.version)}{_flag('Delete', logging.delete)}"
        f"{_flag('Read', logging.read)}{_flag('Write', logging.write)}"
        f"{_retention_xml('RetentionPolicy', logging.retention)}</Logging>"
    )


def _metrics_xml(name: str, metrics: Metrics) -> str:
    return (
        f"<{name}>{xml.element('Version', metrics.version)}{_flag('Enabled', metrics.enabled)}"
        f"{_flag('IncludeAPIs', metrics.include_apis)}"
        f"{_retention_xml('RetentionPolicy', metrics.retention)}</{name}>"
    )


def _cors_xml(rules: tuple[CorsRule, ...]) -> str:
    rows = "".join(
        f"<CorsRule>{xml.element('AllowedOrigins', ','.join(rule.allowed_origins))}"
        f"{xml.element('AllowedMethods', ','.join(rule.allowed_methods))}"
        f"{xml.element('AllowedHeaders', ','.join(rule.allowed_headers))}"
        f"{xml.element('ExposedHeaders', ','.join(rule.exposed_headers))}"
        f"<MaxAgeInSeconds>{rule.max_age_s}</MaxAgeInSeconds></CorsRule>"
        for rule in rules
    )
    return f"<Cors>{rows}</Cors>" if rows else "<Cors />"


def _protocols_xml(multichannel: bool | None) -> str:
    if multichannel is None:
        return ""
    enabled = _flag("Enabled", multichannel)
    return f"<ProtocolSettings><SMB><Multichannel>{enabled}</Multichannel></SMB></ProtocolSettings>"


def _website_xml(website: StaticWebsite) -> str:
    return (
        f"<StaticWebsite>{_flag('Enabled', website.enabled)}"
        f"{xml.optional_element('IndexDocument', website.index_document)}"
        f"{xml.optional_element('ErrorDocument404Path', website.error_document_404_path)}"
        f"{xml.optional_element('DefaultIndexDocumentPath', website.default_index_document_path)}"
        "</StaticWebsite>"
    )
