"""Classification of fields by name."""

from functools import cache
from typing import Final


@cache
def normalised(name: str) -> str:
    """Drop case, separators and a plural's s: `fileNames` and `file-name` are `filename`."""
    plain = "".join(filter(str.isalnum, name)).lower() or name
    return plain[:-1] if plain.endswith("s") and not plain.endswith("ss") else plain


def _table(names: str) -> frozenset[str]:
    return frozenset(map(normalised, names.split()))


_STEERING: Final = _table(
    "cursor dry_run format limit max_length max_results offset order order_by page page_size"
    " per_page sort sort_by timeout timeout_ms verbose"
)
_RELATIVE: Final = _table(
    "category count date description end id index key kind label level name size start state"
    " status tag time timestamp title type value version"
)
_ANYTHING: Final = _table("body content data input payload text")
_FORMATS: Final = _table("csv html json markdown xml yaml")
_RESULTS: Final = _table("document file object output parsed raw response result value")


def steers(name: str) -> bool:
    """Return whether a field of this name controls a call and holds no data."""
    return normalised(name) in _STEERING


def is_relative(name: str) -> bool:
    """Return whether a name means something only together with its object: the id of what?"""
    return normalised(name) in _RELATIVE


def is_payload(output: str) -> bool:
    """Return whether an output of this name holds the content of a result."""
    return normalised(output) in _ANYTHING | _FORMATS | _RESULTS


def takes_payload(name: str) -> bool:
    """Return whether an input of this name takes content of any kind."""
    return normalised(name) in _ANYTHING | _FORMATS


def formats_agree(output: str, name: str) -> bool:
    """Return whether a payload can have the format that an input requires: HTML is not JSON."""
    given, wanted = normalised(output), normalised(name)
    return given == wanted or not {given, wanted} <= _FORMATS
