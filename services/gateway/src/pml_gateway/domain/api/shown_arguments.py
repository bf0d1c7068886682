"""Arguments of calls as approvers see them: the origin of each, and its value.

They are built from the patterns that calls are compared with, so that the arguments shown are the
arguments bound.
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
from pml_gateway.domain.api.shown_text import Cut, ShownText, TextRenderer, json_text, marks_of_name

Kind = Literal[
    "literal", "caller", "result", "computed", "spread", "object", "list", "either", "absent"
]
_COMPUTED: Final = "computed when it runs"
_REAL: Final = "what the run gives it"


def _is_empty(value: object) -> bool:
    return value is None or value == ()


class ShownArgument(Contract):
    """An argument, or a part of one; `name` is its key, or its index in a list.

    `words` describe the origin of the value. `text` is the value as JSON, the expression of a
    computed value, or the path of a value in a result; it is truncated if there is a `cut`.
    `marks` are warnings.
    """

    name: str
    kind: Kind
    words: str
    text: str | None = Field(default=None, exclude_if=_is_empty)
    cut: Cut | None = Field(default=None, exclude_if=_is_empty)
    marks: tuple[str, ...] = Field(default=(), exclude_if=_is_empty)
    parts: "tuple[ShownArgument, ...]" = Field(default=(), exclude_if=_is_empty)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is cut."""
        return self.cut is None and all(part.is_whole for part in self.parts)


class ArgumentRenderer:
    """Renders the arguments of the calls of one approval. `long` maps digests to the literals that
    grants hold by digest only."""

    def __init__(
        self, texts: TextRenderer, long: Mapping[str, JsonValue] = MappingProxyType({})
    ) -> None:
        self._texts = texts
        self._long = long
        self.count = 0
        """Number of arguments rendered, parts included."""

    def of_fields(self, fields: Fields) -> tuple[ShownArgument, ...]:
        """Render the arguments of a call, or the fields of an object."""
        named = [self._of(name, pattern) for name, pattern in fields.fields.items()]
        return (*named, *(self._of_spread(spread) for spread in fields.spreads))

    def of_values(self, args: Mapping[str, JsonValue]) -> tuple[ShownArgument, ...]:
        """Render the known arguments of a call at which a run is parked."""
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
                path = self._texts.of_expression(f"{pattern.node_id}{_steps(pattern.path)}")
                return self._leaf(name, "result", _source(pattern), path)
            case Computed(expression=expression):
                return self._leaf(
                    name, "computed", _COMPUTED, self._texts.of_expression(expression)
                )
            case Fields():
                return self._compound(name, "object", "an object", self.of_fields(pattern))
            case Items():
                items = (self._of(str(at), one) for at, one in enumerate(pattern.items))
                return self._compound(name, "list", "a list", items)
            case _:
                ways = (self._of("", one) for one in pattern.patterns)
                return self._compound(name, "either", "one of", ways)

    def _of_known(self, name: str, value: Value, parameter: str | None) -> ShownArgument:
        source = "literal" if parameter is None else _callers(parameter)
        if value is ABSENT:
            words = "left out" if parameter is None else f"{source}, which is left out"
            return self._leaf(name, "absent", words)
        return self._of_value(name, "literal" if parameter is None else "caller", source, value)

    def _of_several(self, name: str, known: Known) -> ShownArgument:
        """Render alternatives; there are none for an element of an empty list."""
        values = [value for value in known.values if value is not ABSENT]
        if len(values) < len(known.values):
            each = (self._of_known("", value, known.parameter) for value in known.values)
            return self._compound(name, "either", "one of", each)
        of = "one of these" if known.parameter is None else f"one of {_callers(known.parameter)}"
        return self._of_value(name, "either", of, values)

    def _of_value(self, name: str, kind: Kind, words: str, value: JsonValue) -> ShownArgument:
        return self._leaf(name, kind, words, self._texts.of_value(value))

    def _of_spread(self, spread: Spread) -> ShownArgument:
        keys = spread.keys
        may = "any key" if keys is None else ", ".join(map(visible, keys)) or "nothing"
        source = (self._of("", spread.value),)
        return self._compound(f"...{spread.expression}", "spread", f"may set {may}", source)

    def _compound(
        self, name: str, kind: Kind, words: str, parts: Iterable[ShownArgument]
    ) -> ShownArgument:
        self.count += 1
        return ShownArgument(name=visible(name), kind=kind, words=words, parts=tuple(parts))

    def _leaf(
        self, name: str, kind: Kind, words: str, value: ShownText | None = None
    ) -> ShownArgument:
        self.count += 1
        text, cut, marks = value or (None, None, ())
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
