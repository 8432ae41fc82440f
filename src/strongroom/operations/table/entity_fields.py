"""The fields that operations on tables and entities accept: headers, parameters and documents.

Source: request headers and bodies of "Operations on tables" and "Operations on entities"; reference
sections 1 to 3. The page's start: "Query Entities", "Query timeout and pagination".
"""

from __future__ import annotations

import re
from typing import Final, cast

from strongroom import limits
from strongroom.errors import table as table_errors
from strongroom.errors.core import StorageError, invalid_header, not_served
from strongroom.operations.core.fields import header, parameter
from strongroom.operations.core.spec import Field
from strongroom.semantics.table import edm, entities, property_names, table_filter, table_intervals
from strongroom.semantics.table.edm import EdmType, NotOfType, OutOfRange, Value
from strongroom.semantics.table.entities import Properties
from strongroom.semantics.table.table_filter import Expression
from strongroom.services.table.entities import EntityDocument
from strongroom.slices import Steps, run_to_completion
from strongroom.wire.core import continuation
from strongroom.wire.core.http import Request
from strongroom.wire.core.query import Query
from strongroom.wire.table import odata, odata_entities
from strongroom.wire.table.odata_entities import SentEntity

_STRING: Final = EdmType.STRING.value
_OPTIONS: Final = frozenset(("$filter", "$top", "$select", "$format"))
_OPTIONS_OF_ONE: Final = frozenset(("$select", "$format"))
_PARTITION: Final = continuation.NEXT_PARTITION_KEY.lower()
_ROW: Final = continuation.NEXT_ROW_KEY.lower()
PREFERENCES: Final = ("return-content", "return-no-content")
# Python refuses to convert a number with thousands of digits.
_TOP: Final = re.compile(r"[0-9]{1,9}")


def _format(request: Request, query: Query) -> None:
    odata.negotiate(request.headers.get("accept"), query.get("$format"))


def _sent_format(request: Request, query: Query) -> None:
    odata.check_content_type(request.headers.get("content-type"))


FORMAT: Final = Field("", _format, headers=("accept",), query=("$format",))
"""Refuses formats in which the service cannot answer. It sets no field, since the answer reads the
headers again."""
SENT_FORMAT: Final = Field("", _sent_format, headers=("content-type",))
"""Refuses documents that are not JSON. It sets no field."""


SELECT_CHECKED: Final = Field("", lambda _, query: selected(query), query=("$select",))


def selected(query: Query) -> tuple[str, ...] | None:
    """The names in `$select`; None for all properties."""
    text = query.get("$select")
    if text is None or not text.strip():
        return None
    names = dict.fromkeys(name.strip() for name in text.split(","))
    return None if "*" in names else tuple(filter(property_names.is_name, filter(None, names)))


def _filter(name: str, value: str) -> Expression | None:
    return table_filter.parse(value) if value.strip() else None


def _top(request: Request, query: Query) -> int:
    """The maximum number of entities in a page.

    A selected property that an entity lacks is shown as null. The number is limited so that a page
    of such nulls still has the usual size.
    """
    most = limits.TABLE_RESULTS_MAX
    text = query.get("$top")
    if text and not (_TOP.fullmatch(text) and int(text) <= most):
        raise entities.invalid(f"$top is a whole number from 0 to {most}.")
    names = selected(query) or ()
    nulls_bytes = sum(len(name.encode()) + len('"":null,') for name in names)
    fitting = limits.TABLE_PAGE_BYTES_MAX // max(1, nulls_bytes)
    return min(most, int(text or most), max(1, fitting))


def _refuse_unknown_options(request: Request, query: Query) -> None:
    _refuse_others(query, _OPTIONS)


def _refuse_set_options(request: Request, query: Query) -> None:
    _refuse_others(query, _OPTIONS_OF_ONE)


def _refuse_others(query: Query, options: frozenset[str]) -> None:
    for name in query:
        if name.startswith("$") and name not in options:
            raise not_served(f"The query option {query.as_sent(name)}")


FILTER: Final = parameter("filter", "$filter", _filter)
TOP: Final = Field("top", _top, query=("$top",))
NO_UNKNOWN_OPTIONS: Final = Field("", _refuse_unknown_options)
"""Refuses query options that the service does not have, such as $orderby."""
NO_SET_OPTIONS: Final = Field("", _refuse_set_options)
"""Refuses options that apply only to a set of entities, such as $filter."""


def _next_table(name: str, value: str) -> str:
    return continuation.decode(continuation.NEXT_TABLE_NAME, value).decode("utf-8", "replace")


def _start(request: Request, query: Query) -> table_intervals.Position:
    position = continuation.decode_keys(query.get(_PARTITION), query.get(_ROW))
    return table_intervals.START if position is None else position


START: Final = Field("start", _start, query=(_PARTITION, _ROW))
NEXT_TABLE: Final = parameter("first", "nexttablename", _next_table, default="")


def _echo(name: str, value: str) -> bool:
    preference = value.strip().lower()
    if preference not in PREFERENCES:
        raise invalid_header(name, value)
    return preference == PREFERENCES[0]


ECHO: Final = header("echo", "prefer", _echo, default=True)


def _no_other_condition(request: Request, query: Query) -> None:
    for name in ("If-None-Match", "If-Modified-Since", "If-Unmodified-Since"):
        if name.lower() in request.headers:
            raise entities.invalid(f"{name} is no condition of a write.")


NO_OTHER_CONDITION: Final = Field("", _no_other_condition)
"""Refuses conditions that writes do not support, since a write must not ignore a condition."""
IF_MATCH: Final = header(
    "match", "if-match", lambda _, value: odata.read_match(value), required=True
)


def read_document(body: bytes) -> EntityDocument | Steps[EntityDocument]:
    """The entity of a request's body, or the steps that return it if the body is long."""
    steps = _document(body)
    return steps if len(body) > odata_entities.LONG_BYTES else run_to_completion(steps)


def _document(body: bytes) -> Steps[EntityDocument]:
    """The keys are checked before the properties."""
    sent = yield from odata_entities.entity_steps(body)
    keys = [_take_key(sent, name) for name in entities.KEYS]
    if sent.is_plain:  # then JSON gives the types of its values, and none can be too large
        properties = cast("Properties", sent.values)
        entities.check_names(properties)
    else:
        properties = _properties(sent)
        yield
        entities.check_names(properties)
        entities.check_values(properties)
    return EntityDocument(keys[0], keys[1], properties)


def _take_key(sent: SentEntity, name: str) -> str | None:
    """Remove a key from the document and return it; None if the document does not have it."""
    values = sent.values
    if name not in values:
        return None
    value = values.pop(name)
    if value is None:
        raise StorageError(table_errors.PROPERTIES_NEED_VALUE)
    if not isinstance(value, str) or sent.types.get(name, _STRING) != _STRING:
        raise entities.invalid(f"The {name} must be a string.")
    return value


def _properties(sent: SentEntity) -> Properties:
    """All properties except the keys. A null value is no property."""
    properties: dict[str, Value] = {}
    name = ""
    try:
        for name, raw in sent.values.items():
            if raw is not None:
                properties[name] = edm.value_of(raw, sent.types.get(name))
    except OutOfRange as error:
        raise entities.out_of_range(name, str(error)) from None
    except NotOfType as error:
        raise entities.invalid(f"The property {name[:255]}: {error}.") from None
    return properties
