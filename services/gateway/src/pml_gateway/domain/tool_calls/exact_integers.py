"""Integers that JavaScript cannot represent: programs would get and send other ones instead."""

from typing import Final

from pydantic import JsonValue

LARGEST: Final = 2**53 - 1
"""JavaScript's `Number.MAX_SAFE_INTEGER`."""


def with_exact_integers(value: JsonValue) -> JsonValue:
    """Return a value in which each integer beyond LARGEST is the text of its digits, which is also
    how a program's BigInt leaves it."""
    match value:
        case bool():
            return value
        case int() if abs(value) > LARGEST:
            return str(value)
        case dict():
            return {key: with_exact_integers(item) for key, item in value.items()}
        case list():
            return [with_exact_integers(item) for item in value]
        case _:
            return value


def inexact_integer(value: JsonValue, path: str = "") -> tuple[str, int] | None:
    """Return the path and value of the first integer beyond LARGEST; None without any."""
    match value:
        case bool():
            return None
        case int() if abs(value) > LARGEST:
            return path, value
        case dict():
            parts = [(f"{path}.{key}" if path else key, item) for key, item in value.items()]
        case list():
            parts = [(f"{path}.{number}", item) for number, item in enumerate(value)]
        case _:
            return None
    found = (inexact_integer(item, where) for where, item in parts)
    return next((one for one in found if one is not None), None)
