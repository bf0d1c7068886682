"""Values in a DAG: JSON, in which a string may refer to a task's output or the DAG's input.

`$OUTPUT[id]` is a task's output and `$INPUT[name]` an argument of the DAG; a path may follow:
`$OUTPUT[list].items[0].name`, `$OUTPUT[list]["odd name"]`. Only a whole string is a reference, and
`$$` at a string's beginning is one `$`: `$$OUTPUT[list]` is text.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import JsonValue

Path = tuple[str | int, ...]

_BEGINS: Final = ("$OUTPUT[", "$INPUT[")
_ESCAPED: Final = ("$$", *_BEGINS)
_HEAD: Final = re.compile(r"\$(OUTPUT|INPUT)\[([^\[\]]+)\]")
_STEP: Final = re.compile(r'\.([A-Za-z_$][\w$]*)|\[(\d{1,9})\]|\[("(?:[^"\\]|\\.)*")\]', re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
FORBIDDEN: Final = "__proto__"
"""In TypeScript a field of this name sets the prototype."""


class Unreadable(ValueError):
    """A value that is not valid; the message names it and the reason."""


@dataclass(frozen=True)
class Reference:
    """A reference to a task's output or the DAG's input, and a path in it."""

    kind: Literal["OUTPUT", "INPUT"]
    name: str
    path: Path = ()

    def __str__(self) -> str:
        return f"${self.kind}[{self.name}]{path_text(self.path)}"


def read(text: str) -> Reference | None:
    """Parse a string as a reference; None if it is text. Raises Unreadable."""
    if not text.startswith(_BEGINS):
        return None
    head = _HEAD.match(text)
    path = None if head is None else read_path(text[head.end() :])
    if head is None or path is None:
        raise Unreadable(
            f"{json.dumps(text)} is no reference: write $OUTPUT[id] or $INPUT[name], and no more "
            "than a path after it, as .items[0]; text begins with $$"
        )
    kind: Literal["OUTPUT", "INPUT"] = "OUTPUT" if head[1] == "OUTPUT" else "INPUT"
    return Reference(kind, head[2], path)


def read_path(text: str) -> Path | None:
    """Parse `.items[0]["odd name"]` into its steps; None if it is not a path."""
    steps: list[str | int] = []
    while text:
        found = _STEP.match(text)
        if found is None:
            return None
        try:
            steps.append(found[1] or (int(found[2]) if found[2] else json.loads(found[3])))
        except json.JSONDecodeError:
            return None
        text = text[found.end() :]
    return tuple(steps)


def path_of(code: str) -> Path | None:
    """Return the path in an expression that is a variable and a path; else None."""
    name = _NAME.match(code)
    return None if name is None else read_path(code[name.end() :])


def path_text(path: Path) -> str:
    """Write a path, as in references and in TypeScript."""
    return "".join(
        f".{step}" if isinstance(step, str) and _NAME.fullmatch(step) else f"[{json.dumps(step)}]"
        for step in path
    )


def at(value: JsonValue, path: Path) -> JsonValue:
    """Return the value at the end of a path. Raises LookupError."""
    for step in path:
        value = _within(value, step)
    return value


def _within(value: JsonValue, step: str | int) -> JsonValue:
    match value, step:
        case dict(), str():
            return value[step]
        case list(), int():
            return value[step]
        case _:
            raise LookupError(step)


def references(value: JsonValue) -> Iterator[Reference]:
    """Yield every reference in a value, in order. Raises Unreadable."""
    if isinstance(value, str):
        found = read(value)
        if found is not None:
            yield found
    elif isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from references(item)


def text_of(value: JsonValue) -> JsonValue:
    """Escape the strings of a literal value that would otherwise be references."""
    if isinstance(value, str):
        return f"${value}" if value.startswith(_ESCAPED) else value
    if isinstance(value, list):
        return [text_of(item) for item in value]
    if isinstance(value, dict):
        return {key: text_of(item) for key, item in value.items()}
    return value


def expression(value: JsonValue, named: Callable[[Reference], str]) -> str:
    """Write a value in TypeScript; `named` returns the variable that holds a reference's root.
    Raises Unreadable."""
    if isinstance(value, str):
        found = read(value)
        if found is None:
            return json.dumps(value.removeprefix("$") if value.startswith("$$") else value)
        if FORBIDDEN in (found.name, *found.path):
            raise Unreadable(f"{value}: {FORBIDDEN} is not allowed")
        return f"{named(found)}{path_text(found.path)}"
    if isinstance(value, list):
        return f"[{', '.join(expression(item, named) for item in value)}]"
    if isinstance(value, dict):
        if FORBIDDEN in value:
            raise Unreadable(f"a field named {FORBIDDEN} is not allowed")
        fields = (f"{json.dumps(key)}: {expression(item, named)}" for key, item in value.items())
        return f"{{ {', '.join(fields)} }}" if value else "{}"
    return json.dumps(value)
