"""The `_meta` and icons of a tool, in its definition and as our clients see them."""

import hashlib
import json
from collections.abc import Collection, Sequence

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject

_LONGEST = 1024

_MOST_SHOWN = 16 * 1024
_OF_THE_PROTOCOL = ("io.modelcontextprotocol/", "pml/")

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


def shown_with(tool: JsonObject) -> JsonObject:
    """Return what a server shows with a tool beside its definition, as it is: its `_meta`, icons
    and `execution`. What is long is left out, since every listing carries it."""
    icons = tool.get("icons")
    found: JsonObject = {
        "_meta": passed_meta(tool.get("_meta")),
        "icons": [_told(icon) for icon in icons] if isinstance(icons, list) else None,
        "execution": _told(tool.get("execution")),
    }
    return {key: value for key, value in found.items() if value and _length(value) <= _MOST_SHOWN}


def passed_meta(meta: JsonValue) -> JsonObject:
    """Return those keys of a server's `_meta` that mean the same to our clients: not the
    protocol's own, which are about the connection."""
    found = meta if isinstance(meta, dict) else {}
    return {key: value for key, value in found.items() if not key.startswith(_OF_THE_PROTOCOL)}


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


def _told(value: JsonValue) -> JsonValue:
    """Return an object without its null fields."""
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if item is not None}


def _length(value: JsonValue) -> int:
    return len(json.dumps(value))


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
