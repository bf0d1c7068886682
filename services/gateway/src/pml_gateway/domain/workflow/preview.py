"""Shortened values for people to read."""

import json
from typing import Final

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject

PREVIEW_LENGTH: Final = 240
"""Characters."""

_MOST_PREVIEWED: Final = 20


def preview(value: JsonValue) -> str:
    """Return the first characters of a value: of a text as it is, else of its JSON."""
    text = _text(value)
    return text if len(text) <= PREVIEW_LENGTH else text[: PREVIEW_LENGTH - 1] + "…"


def shortened(value: JsonValue) -> JsonValue:
    """Return the value if it is short, else its preview."""
    return value if len(_text(value)) <= PREVIEW_LENGTH else preview(value)


def previewed(args: JsonObject) -> JsonObject:
    """Return the first arguments for an error, each shortened."""
    return {name[:PREVIEW_LENGTH]: shortened(args[name]) for name in list(args)[:_MOST_PREVIEWED]}


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
