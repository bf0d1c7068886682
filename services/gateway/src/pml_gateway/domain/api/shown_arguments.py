"""The arguments of a call as an approver is shown them: where each comes from, and its value.

They are made of the patterns that calls are compared with, so that what is shown is what is bound.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal

from pydantic import Field, JsonValue

from pml_common.binding.patterns import (
    ABSENT,
    Computed,
    Digested,
    Fields,
    FromResult,
    Items,
    Known,
    Pattern,
    Spread,
    Steps,
    Value,
)
from pml_common.contracts.base import Contract
from pml_common.text.visible import visible
from pml_gateway.domain.api.shown_text import Cut, ShownText, Texts, json_text, marks_of_name

Kind = Literal[
    "literal", "caller", "result", "computed", "spread", "object", "list", "either", "absent"
]
_COMPUTED: Final = "computed when it runs"
_REAL: Final = "what the run gives it"


def _says_nothing(value: object) -> bool:
    return value is None or value == ()


class ShownArgument(Contract):
    """One argument, or a part of one, by `name`: a key, or its place in a list.

    `words` say where the value comes from. `text` is the value as JSON, of what is computed the
    expression, of what comes from a result the way to it; `cut` tells that it is not all there.
    `marks` are what must not be overlooked.
    """

    name: str
    kind: Kind
    words: str
    text: str | None = Field(default=None, exclude_if=_says_nothing)
    cut: Cut | None = Field(default=None, exclude_if=_says_nothing)
    marks: tuple[str, ...] = Field(default=(), exclude_if=_says_nothing)
    parts: "tuple[ShownArgument, ...]" = Field(default=(), exclude_if=_says_nothing)

    @property
    def is_whole(self) -> bool:
        """Whether nothing was cut."""
        return self.cut is None and all(part.is_whole for part in self.parts)


class Arguments:
    """Shows the arguments of the calls of one approval. `long` are literals that grants name by
    their digest, by that."""

    def __init__(self, texts: Texts, long: Mapping[str, JsonValue] = MappingProxyType({})) -> None:
        self._texts = texts
        self._long = long
        self.count = 0
        """How many were shown, parts among them."""

    def of_fields(self, fields: Fields) -> tuple[ShownArgument, ...]:
        """The arguments of a call, or the fields of an object."""
        named = [self._of(name, pattern) for name, pattern in fields.fields.items()]
        return (*named, *(self._of_spread(spread) for spread in fields.spreads))

    def of_values(self, args: Mapping[str, JsonValue]) -> tuple[ShownArgument, ...]:
        """The arguments of a call that waits, each of which is known."""
        return tuple(self._of_value(name, "literal", _REAL, args[name]) for name in args)

    def _of(self, name: str, pattern: Pattern) -> ShownArgument:
        match pattern:
            case Known(values=(only,)):
                return self._of_known(name, only, pattern.parameter)
            case Known():
                return self._of_several(name, pattern)
            case Digested(sha256=digest):
                return self._of_value(name, "literal", "literal", self._long.get(digest))
            case FromResult():
                told = self._texts.of_expression(f"{pattern.node_id}{_steps(pattern.path)}")
                return self._told(name, "result", _source(pattern), told)
            case Computed(expression=expression):
                return self._told(
                    name, "computed", _COMPUTED, self._texts.of_expression(expression)
                )
            case Fields():
                return self._made_of(name, "object", "an object", self.of_fields(pattern))
            case Items():
                items = (self._of(str(at), one) for at, one in enumerate(pattern.items))
                return self._made_of(name, "list", "a list", items)
            case _:
                ways = (self._of("", one) for one in pattern.patterns)
                return self._made_of(name, "either", "one of", ways)

    def _of_known(self, name: str, value: Value, parameter: str | None) -> ShownArgument:
        source = "literal" if parameter is None else _callers(parameter)
        if value is ABSENT:
            words = "left out" if parameter is None else f"{source}, which is left out"
            return self._told(name, "absent", words)
        return self._of_value(name, "literal" if parameter is None else "caller", source, value)

    def _of_several(self, name: str, known: Known) -> ShownArgument:
        """One of several values, or of none: an element of an empty list."""
        values = [value for value in known.values if value is not ABSENT]
        if len(values) < len(known.values):
            each = (self._of_known("", value, known.parameter) for value in known.values)
            return self._made_of(name, "either", "one of", each)
        of = "one of these" if known.parameter is None else f"one of {_callers(known.parameter)}"
        return self._of_value(name, "either", of, values)

    def _of_value(self, name: str, kind: Kind, words: str, value: JsonValue) -> ShownArgument:
        return self._told(name, kind, words, self._texts.of_value(value))

    def _of_spread(self, spread: Spread) -> ShownArgument:
        keys = spread.keys
        may = "any key" if keys is None else ", ".join(map(visible, keys)) or "nothing"
        source = (self._of("", spread.value),)
        return self._made_of(f"...{spread.expression}", "spread", f"may set {may}", source)

    def _made_of(
        self, name: str, kind: Kind, words: str, parts: Iterable[ShownArgument]
    ) -> ShownArgument:
        self.count += 1
        return ShownArgument(name=visible(name), kind=kind, words=words, parts=tuple(parts))

    def _told(
        self, name: str, kind: Kind, words: str, told: ShownText | None = None
    ) -> ShownArgument:
        self.count += 1
        text, cut, marks = told or (None, None, ())
        marks = tuple(dict.fromkeys((*marks, *marks_of_name(name))))
        return ShownArgument(
            name=visible(name), kind=kind, words=words, text=text, cut=cut, marks=marks
        )


def _callers(parameter: str) -> str:
    return f"the caller's {visible(parameter)}" if parameter else "the caller's arguments"


def _source(pattern: FromResult) -> str:
    node, path = pattern.node_id, pattern.path
    if None not in path:
        return f"from some result of {node}"
    ends = len(path) - 1 - path[::-1].index(None)
    return f"an element of {node}{_steps(path[:ends])}"


def _steps(path: Steps) -> str:
    """`.files[0].name`; `[…]` is any element."""
    return "".join(map(_step, path))


def _step(step: str | int | None) -> str:
    if isinstance(step, str):
        return f".{step}" if step.isidentifier() and step.isascii() else f"[{json_text(step)}]"
    return "[…]" if step is None else f"[{step}]"
