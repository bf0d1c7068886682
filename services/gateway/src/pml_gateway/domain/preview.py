"""Values as people are shown them."""

import json
from typing import Final

from pydantic import JsonValue

PREVIEW_LENGTH: Final = 240
"""Characters (F3)."""


def preview(value: JsonValue) -> str:
    """The head of a value: of text as it is, of all else as JSON."""
    text = _text(value)
    return text if len(text) <= PREVIEW_LENGTH else text[: PREVIEW_LENGTH - 1] + "…"


def shortened(value: JsonValue) -> JsonValue:
    """The value where it is short, else its head as text."""
    return value if len(_text(value)) <= PREVIEW_LENGTH else preview(value)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
