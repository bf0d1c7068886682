"""Faults of a model's fields in our own words, without the validator's and its addresses."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from pydantic import ValidationError

_TEXT, _WHOLE, _NUMBER = "must be a string", "must be a whole number", "must be a number"
_BOOLEAN, _OBJECT, _LIST = "must be true or false", "must be an object", "must be a list"
_TIME: Final = "must be a date and time with its offset, as 2026-01-31T09:30:00Z"
_UUID: Final = "must be a UUID, as 4d0b6fb2-acbc-5f0f-9660-00e28ec29407"
UNKNOWN: Final = "unknown field"
_WORDS: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "extra_forbidden": UNKNOWN,
    "string_type": _TEXT,
    "string_unicode": "must be text in valid Unicode",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": "must be a smaller number",
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "must be a finite number",
    "bool_type": _BOOLEAN,
    "bool_parsing": _BOOLEAN,
    "dict_type": _OBJECT,
    "mapping_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "set_type": _LIST,
    "frozen_set_type": _LIST,
    "none_required": "must be null",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be greater than or equal to {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be less than or equal to {le}",
    "string_too_short": "must have a length of at least {min_length}",
    "string_too_long": "must have a length of at most {max_length}",
    "too_short": "must have at least {min_length} in the list",
    "too_long": "must have at most {max_length} in the list",
    "uuid_type": _UUID,
    "uuid_parsing": _UUID,
    "uuid_version": _UUID,
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "timezone_aware": _TIME,
    "json_invalid": "is not valid JSON: {error}",
    "json_type": "must be JSON text",
    "union_tag_invalid": "must have {discriminator} as one of {expected_tags}",
    "union_tag_not_found": "must have {discriminator}",
}
_OWN: Final = ("Value error, ", "Assertion failed, ")


def words_of(fault: Mapping[str, object]) -> str:
    """Describe one of a ValidationError's `errors()`, without its field."""
    kind = str(fault["type"])
    if kind in _WORDS:
        try:
            return _WORDS[kind].format(**cast(Mapping[str, object], fault.get("ctx", {})))
        except KeyError:
            return "is not valid"
    said = str(fault.get("msg", ""))
    own = next((prefix for prefix in _OWN if said.startswith(prefix)), None)
    return "is not valid" if own is None else said.removeprefix(own)


def field_of(place: Sequence[object]) -> str:
    """Return the dotted name of a field, without what the validator adds to it, as `[key]` or
    `function-after[…]`."""
    return ".".join(str(part) for part in place if not str(part).endswith("]"))


def faults_of(error: ValidationError) -> tuple[str, ...]:
    """Describe each fault with its field, each once."""
    found = list[str]()
    for fault in error.errors(include_url=False, include_input=False):
        field, words = field_of(fault["loc"]), words_of({**fault})
        found.append(f"{field}: {words}" if field else words)
    return tuple(dict.fromkeys(found))


def text_of(error: BaseException) -> str:
    """Return the text of an error: of a ValidationError its faults, of any other its own."""
    return "; ".join(faults_of(error)) if isinstance(error, ValidationError) else str(error)
