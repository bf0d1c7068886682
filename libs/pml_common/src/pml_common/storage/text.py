"""Text as Postgres can hold it."""


def storable(text: str) -> str:
    """The text with U+FFFD for each NUL, which `text` columns refuse (`json` ones keep it)."""
    return text.replace("\x00", "�")
