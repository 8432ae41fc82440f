"""Stored access policies as XML: the body of Set Container ACL, the answer of Get Container ACL.

Source: "Set Container ACL", "Define a stored access policy".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from strongroom import limits
from strongroom.errors.core import StorageError
from strongroom.times import parse_iso8601
from strongroom.values import AccessPolicy, iso7
from strongroom.wire.core import xml

_FIELDS: Final = ("Start", "Expiry", "Permission")
_PERMISSION_CHARS_MAX: Final = 32
# The letters of all services, since containers, tables and shares send the same document.
_PERMISSION_LETTERS: Final = frozenset("racwdxyltfmeopiu")
_QUEUE_LETTERS: Final = frozenset("raup")


def read_signed_identifiers(body: bytes) -> tuple[AccessPolicy, ...]:
    """The policies of a body; none for an empty body. Times remain as sent."""
    if not body:
        return ()
    root = xml.read(body, "SignedIdentifiers")
    policies: list[AccessPolicy] = []
    for child in root.children:
        if child.name != "SignedIdentifier":
            raise xml.invalid_document(f"The element {child.name[:64]} is not expected.")
        policies.append(_policy(child))
    if len(policies) > limits.STORED_POLICIES_MAX:
        raise xml.invalid_document("There are more than five stored access policies.")
    if len({policy.id for policy in policies}) != len(policies):
        raise xml.invalid_document("The ids of stored access policies must be unique.")
    return tuple(policies)


def read_queue_identifiers(body: bytes) -> tuple[AccessPolicy, ...]:
    """As `read_signed_identifiers`, but InvalidXmlDocument, not InvalidXmlNodeValue, for
    permissions that queues do not have."""
    try:
        policies = read_signed_identifiers(body)
    except StorageError as error:
        if ("XmlNodeName", "Permission") not in error.extras:
            raise
        raise _no_queue_letters() from None
    if not all(_QUEUE_LETTERS.issuperset(policy.permission or "") for policy in policies):
        raise _no_queue_letters()
    return policies


def _no_queue_letters() -> StorageError:
    return xml.invalid_document("The permissions of a queue are r, a, u and p.", (0, 0))


def _policy(identifier: xml.Element) -> AccessPolicy:
    identifier.only("Id", "AccessPolicy")
    policy_id = identifier.require("Id").text.strip()
    if not 1 <= len(policy_id) <= limits.POLICY_ID_CHARS_MAX:
        raise xml.invalid_node("Id", policy_id, "An id has 1 to 64 characters.")
    policy = identifier.child("AccessPolicy")
    if policy is None:
        return AccessPolicy(policy_id)
    policy.only(*_FIELDS)
    start, expiry, permission = (_text(policy, name) for name in _FIELDS)
    for name, text in (("Start", start), ("Expiry", expiry)):
        if text is not None and parse_iso8601(text) is None:
            raise xml.invalid_node(name, text, "The value is not a UTC time in ISO 8601.")
    if permission is not None and not _is_permission(permission):
        raise xml.invalid_node("Permission", permission)
    return AccessPolicy(policy_id, start, expiry, permission)


def _text(policy: xml.Element, name: str) -> str | None:
    field = policy.child(name)
    return None if field is None else field.text.strip() or None


def _is_permission(text: str) -> bool:
    return len(text) <= _PERMISSION_CHARS_MAX and set(text) <= _PERMISSION_LETTERS


def write_signed_identifiers(policies: Iterable[AccessPolicy]) -> bytes:
    """The answer of Get Container ACL, and of the same operation of other services."""
    rows = "".join(map(_policy_xml, policies))
    if not rows:
        return f"{xml.DECLARATION}<SignedIdentifiers />".encode()
    return f"{xml.DECLARATION}<SignedIdentifiers>{rows}</SignedIdentifiers>".encode()


def _policy_xml(policy: AccessPolicy) -> str:
    texts = (_seven_digits(policy.start), _seven_digits(policy.expiry), policy.permission)
    fields = "".join(map(xml.optional_element, _FIELDS, texts))
    inner = f"<AccessPolicy>{fields}</AccessPolicy>" if fields else ""
    return f"<SignedIdentifier>{xml.element('Id', policy.id)}{inner}</SignedIdentifier>"


def _seven_digits(text: str | None) -> str | None:
    """A time as answers show it; it was stored as it was sent."""
    ticks = None if text is None else parse_iso8601(text)
    return text if ticks is None else iso7(ticks)
