"""Canonical JSON (RFC 8785), for digests and comparison of large values."""

import hashlib
from typing import Final

import rfc8785
from pydantic import JsonValue

_SAFE: Final = 2**53


def canonical(value: JsonValue) -> bytes:
    """Return the canonical form. Raises ValueError for text that is not valid Unicode."""
    return rfc8785.dumps(_doubles(value))


def sha256_of(value: JsonValue) -> str:
    """Return the digest of a value, hex. Raises ValueError for text that is not valid Unicode."""
    return hashlib.sha256(canonical(value)).hexdigest()


def sha256_of_text(text: str) -> str:
    """Return the digest of a text in UTF-8, hex; a lone surrogate is encoded as such."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _doubles(value: JsonValue) -> JsonValue:
    """Convert integers that JavaScript cannot represent to the doubles it uses instead."""
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
