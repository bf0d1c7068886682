"""Comparison of JSON values by JavaScript's rules: numbers are doubles, `true` is not 1."""

from pydantic import JsonValue


def same_json(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values have the same canonical JSON (RFC 8785)."""
    match one, other:
        case bool(), _:
            return isinstance(other, bool) and one is other
        case _, bool():
            return False
        case int() | float(), int() | float():
            return _double(one) == _double(other)
        case dict(), dict():
            return one.keys() == other.keys() and all(same_json(one[k], other[k]) for k in one)
        case list(), list():
            return len(one) == len(other) and all(map(same_json, one, other))
        case _:
            return type(one) is type(other) and one == other


def _double(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
