"""Foreign texts inside TypeScript declarations: names, values and comments that cannot break out of
their places."""

import json
import re
from collections.abc import Container, Iterable
from textwrap import wrap
from typing import Final

from pydantic import JsonValue

_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_LINE_ENDS_OR_HALVES: Final = re.compile("[\u2028\u2029\ud800-\udfff]")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f\ufeff]")
_TAG: Final = re.compile(r"(?<!\w)@")
_COMMENT_WIDTH: Final = 92
_MAX_COMMENT: Final = 600
_LARGEST_EXACT: Final = 2**53
_WIDTH: Final = 88


def quoted(text: str) -> str:
    """Return a string literal."""
    return json.dumps(text, ensure_ascii=_LINE_ENDS_OR_HALVES.search(text) is not None)


def key(name: str) -> str:
    """Return the name of a member: quoted where it is no identifier."""
    return name if _IDENTIFIER.fullmatch(name) else quoted(name)


def pascal(*parts: str) -> str:
    """Return the words of the parts, as one name: `FsReadNode`."""
    words = (word for part in parts for word in _WORD.findall(part))
    return "".join(word[0].upper() + word[1:] for word in words)


def literal(value: JsonValue) -> str | None:
    """Return the type that only this value has, or the nearest that can be written; None for a list
    or an object."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return json.dumps(value) if abs(value) < _LARGEST_EXACT else "number"
    return None


def comment(text: str) -> str:
    """Return a documentation comment with its line end; nothing for an empty text.

    An end of comment or a directive (`@ts-expect-error`) in the text has no effect.
    """
    flat = " ".join(_CONTROL.sub(" ", text.encode(errors="replace").decode()).split())
    if not flat:
        return ""
    if len(flat) > _MAX_COMMENT:
        flat = flat[: _MAX_COMMENT - 1] + "…"
    safe = _TAG.sub(r"\\@", flat.replace("*/", "*\\/"))
    if len(safe) <= _COMMENT_WIDTH:
        return f"/** {safe} */\n"
    lines = wrap(safe, _COMMENT_WIDTH, break_long_words=False, break_on_hyphens=False)
    return "/**\n" + "".join(f" * {line}\n" for line in lines) + " */\n"


def block(members: Iterable[str]) -> str:
    """Return an object type: on one line where that is short, else a line for each member."""
    found = list(members)
    if not found:
        return "{}"
    flat = f"{{ {'; '.join(found)} }}"
    if len(flat) <= _WIDTH and "\n" not in flat:
        return flat
    return "{\n" + "".join(f"{indented(member)};\n" for member in found) + "}"


def indented(text: str) -> str:
    """Indent every line by one step."""
    return "\n".join(f"  {line}" if line else line for line in text.split("\n"))


def unique(name: str, taken: Container[str]) -> str:
    """Return the name, with a number where it is taken."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}{number}", number + 1
    return found
