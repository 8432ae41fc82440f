"""The rows of the error table that only the Table service uses.

Must not live here: rows that several services share (core.py). Source: "Table service error
codes" of the Azure Storage REST reference; the texts are those that its clients have recorded.
"""

from __future__ import annotations

from strongroom.errors.core import row

ATOM_FORMAT_NOT_SUPPORTED = row("AtomFormatNotSupported", 415, "Atom format is not supported.")
COMMANDS_ON_DIFFERENT_PARTITIONS = row(
    "CommandsInBatchActOnDifferentPartitions",
    400,
    "All commands in a batch must operate on same entity group.",
)
DUPLICATE_PROPERTIES_SPECIFIED = row(
    "DuplicatePropertiesSpecified", 400, "A property is specified more than one time."
)
ENTITY_ALREADY_EXISTS = row("EntityAlreadyExists", 409, "The specified entity already exists.")
ENTITY_NOT_FOUND = row("EntityNotFound", 404, "The specified entity does not exist.")
ENTITY_TOO_LARGE = row(
    "EntityTooLarge", 400, "The entity is larger than the maximum allowed size (1MB)."
)
INVALID_DUPLICATE_ROW = row(
    "InvalidDuplicateRow",
    400,
    "The batch request contains multiple changes with same row key. An entity can appear only "
    "once in a batch request.",
)
INVALID_VALUE_TYPE = row("InvalidValueType", 400, "The value specified is invalid.")
JSON_FORMAT_NOT_SUPPORTED = row("JsonFormatNotSupported", 415, "JSON format is not supported.")
JSON_VERBOSE_FORMAT_NOT_SUPPORTED = row(
    "JsonVerboseFormatNotSupported", 415, "JSON verbose format is not supported."
)
KEY_VALUE_TOO_LARGE = row(
    "KeyValueTooLarge", 400, "The key value exceeds the maximum allowed size (1KB)."
)
MEDIA_TYPE_NOT_SUPPORTED = row(
    "MediaTypeNotSupported",
    415,
    "None of the provided media types are supported.",
)
METHOD_NOT_ALLOWED = row(
    "MethodNotAllowed", 405, "The requested method is not allowed on the specified resource."
)
PROPERTIES_NEED_VALUE = row(
    "PropertiesNeedValue", 400, "The values are not specified for all properties in the entity."
)
PROPERTY_NAME_INVALID = row("PropertyNameInvalid", 400, "The property name is invalid.")
PROPERTY_NAME_TOO_LONG = row(
    "PropertyNameTooLong", 400, "The property name exceeds the maximum allowed length (255)."
)
PROPERTY_VALUE_TOO_LARGE = row(
    "PropertyValueTooLarge",
    400,
    "The property value exceeds the maximum allowed size (64KB). If the property value is a "
    "string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.",
)
TABLE_ALREADY_EXISTS = row("TableAlreadyExists", 409, "The table specified already exists.")
TABLE_BEING_DELETED = row("TableBeingDeleted", 409, "The specified table is being deleted.")
TOO_MANY_PROPERTIES = row(
    "TooManyProperties",
    400,
    "The entity contains more properties than allowed. Each entity can include up to 252 "
    "properties to store data. Each entity also has 3 system properties.",
)
UPDATE_CONDITION_NOT_SATISFIED = row(
    "UpdateConditionNotSatisfied",
    412,
    "The update condition specified in the request was not satisfied.",
)
XMETHOD_INCORRECT_COUNT = row(
    "XMethodIncorrectCount",
    400,
    "More than one X-HTTP-Method is specified in the request.",
)
XMETHOD_INCORRECT_VALUE = row(
    "XMethodIncorrectValue",
    400,
    "The specified X-HTTP-Method is invalid.",
)
XMETHOD_NOT_USING_POST = row(
    "XMethodNotUsingPost", 400, "The HTTP method must be POST when X-HTTP-Method is used."
)
