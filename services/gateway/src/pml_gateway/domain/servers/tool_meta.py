"""The `_meta` and icons of a tool's definition, as MCP lists them."""

import hashlib
from collections.abc import Collection, Sequence

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject

_LONGEST = 1024

MetaKey = tuple[str, str]
"""A tool's name and a key of its `_meta`."""


def meta_of(tool: JsonObject, unstable: Collection[MetaKey] = ()) -> JsonObject:
    """Return a tool's `_meta` without its unstable keys; long texts become their digest."""
    name = str(tool.get("name"))
    return {key: _short(value) for key, value in _meta(tool).items() if (name, key) not in unstable}


def icons_of(tool: JsonObject) -> list[JsonObject]:
    """Return a tool's icons without null fields; long texts (`data:` URIs) become their digest."""
    icons = tool.get("icons")
    found = icons if isinstance(icons, list) else []
    return [
        {key: _short(value) for key, value in icon.items() if value is not None}
        for icon in found
        if isinstance(icon, dict)
    ]


def has_meta(listed: Sequence[JsonObject]) -> bool:
    """Whether any listed tool has `_meta`, in which two listings could differ."""
    return any(_meta(tool) for tool in listed)


def unstable_keys(first: Sequence[JsonObject], second: Sequence[JsonObject]) -> set[MetaKey]:
    """Return the keys of `_meta` that differ between two listings, of tools that are in both."""
    before = {str(tool.get("name")): _meta(tool) for tool in first}
    return {
        (name, key)
        for tool in second
        if (name := str(tool.get("name"))) in before
        for key in before[name].keys() | _meta(tool).keys()
        if key not in before[name]
        or key not in _meta(tool)
        or before[name][key] != _meta(tool)[key]
    }


def _meta(tool: JsonObject) -> JsonObject:
    meta = tool.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _short(value: JsonValue) -> JsonValue:
    """Replace long texts in a value by their digest, so that a listing stays small on the bus."""
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"sha256:{hashlib.sha256(value.encode(errors='surrogatepass')).hexdigest()}"
    if isinstance(value, list):
        return [_short(item) for item in value]
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    return value
