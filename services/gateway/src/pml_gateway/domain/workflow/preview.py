"""Values as people are shown them."""

import json
from typing import Final

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject

PREVIEW_LENGTH: Final = 240
"""Characters (F3)."""

_MOST_PREVIEWED: Final = 20


def preview(value: JsonValue) -> str:
    """The head of a value: of text as it is, of all else as JSON."""
    text = _text(value)
    return text if len(text) <= PREVIEW_LENGTH else text[: PREVIEW_LENGTH - 1] + "…"


def shortened(value: JsonValue) -> JsonValue:
    """The value where it is short, else its head as text."""
    return value if len(_text(value)) <= PREVIEW_LENGTH else preview(value)


def previewed(args: JsonObject) -> JsonObject:
    """Arguments as an error tells them: the first ones, each where it is short, else its head."""
    return {name[:PREVIEW_LENGTH]: shortened(args[name]) for name in list(args)[:_MOST_PREVIEWED]}


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
