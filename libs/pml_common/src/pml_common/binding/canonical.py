"""Canonical JSON (RFC 8785), by which large values are told and compared."""

import hashlib
from typing import Final

import rfc8785
from pydantic import JsonValue

_SAFE: Final = 2**53


def canonical(value: JsonValue) -> bytes:
    """Its one form. Raises ValueError for text that is no Unicode."""
    return rfc8785.dumps(_doubles(value))


def sha256_of(value: JsonValue) -> str:
    """Digest of a value, hex. Raises ValueError for text that is no Unicode."""
    return hashlib.sha256(canonical(value)).hexdigest()


def sha256_of_text(text: str) -> str:
    """Digest of a text in UTF-8, hex; a lone surrogate counts as it is written in JSON."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _doubles(value: JsonValue) -> JsonValue:
    """The same value with integers that JavaScript cannot hold as what it makes of them."""
    match value:
        case bool():
            return value
        case int() if not -_SAFE < value < _SAFE:
            return float(value)
        case dict():
            return {key: _doubles(inner) for key, inner in value.items()}
        case list():
            return [_doubles(inner) for inner in value]
        case _:
            return value
