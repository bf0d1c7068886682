"""Texts cut to one line."""

from pml_common.text.visible import visible


def short(text: str, limit: int) -> str:
    """Shorten to one line of at most `limit` visible characters."""
    line = " ".join(text[: 8 * limit].split())
    shown = visible(line)
    is_whole = len(shown) <= limit and len(text) <= 8 * limit
    return shown if is_whole else f"{shown[: limit - 1]}…"
