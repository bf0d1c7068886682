"""Sentences about calls and arguments for approvers."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from pml_analysis.decision.capabilities import Reached
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    CapabilityNode,
    LiteralArgument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
    TaskNode,
)
from pml_common.contracts.tool import ToolDefinition
from pml_common.text.visible import visible

_SENTENCE_END: Final = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s|\n")
_MAX_SENTENCE: Final = 160
_MAX_VALUE: Final = 60
_MAX_PLACES: Final = 3
_MAX_LINES: Final = 40

Call = TaskNode | CapabilityNode


def calls(tool: ToolDefinition, tasks: Sequence[TaskNode], through: Iterable[Reached]) -> str:
    """Format `Calls fs:write ("Writes a file.") on line 4 with path = "a.txt".`"""
    said = first_sentence(tool.description)
    quoted = f" ({json.dumps(said, ensure_ascii=False)})" if said else ""
    places: list[tuple[Call, str]] = [(task, place(task)) for task in tasks]
    places += (found for one in through for found in _through(one))
    return f"Calls {tool.tool_id}{quoted} {_listed(places)}."


def capability_calls(reached: Reached) -> str:
    """Format `Calls capability a:b on line 4 with x = 1.`"""
    last, *before = reversed(reached.chain)
    way = "".join(f" through capability {name}" for name in before)
    return f"Calls capability {last}{way} {_listed((n, place(n)) for n in reached.nodes)}."


def _through(reached: Reached) -> Iterator[tuple[Call, str]]:
    """Format `through capability a:b on line 4 with x = 1, which calls c:d`."""
    first, *others = reached.chain
    onward = "".join(f", which calls {name}" for name in others)
    for node in reached.nodes:
        yield node, f"through capability {first} {place(node)}{onward}"


def _listed(places: Iterable[tuple[Call, str]]) -> str:
    """Format the first few calls in full, then the number and lines of all: none is left out."""
    found = list(places)
    texts = [text for _, text in found[:_MAX_PLACES]]
    if len(found) > _MAX_PLACES:
        lines = list(dict.fromkeys(call.line for call, _ in found[_MAX_PLACES:]))
        more = len(lines) - _MAX_LINES
        rest = [f"and {more} other lines"] if more > 0 else []
        word = "line" if len(lines) == 1 else "lines"
        texts.append(f"and on {word} {', '.join([*map(str, lines[:_MAX_LINES]), *rest])}")
        texts[0] = f"{len(found)} times: {texts[0]}"
    return "; ".join(texts)


def place(call: Call) -> str:
    """Format `on line 4 with x = 1`."""
    given = ", ".join(_named(key, value) for key, value in call.arguments.items())
    return f"on line {call.line}{f' with {given}' if given else ''}"


def _named(key: str, argument: Argument) -> str:
    if key.startswith("...") and isinstance(argument, ParameterArgument) and argument.path == ():
        return "the caller's arguments"
    return f"{key} = {shown(argument)}"


def shown(argument: Argument) -> str:
    """Format an argument for a reader."""
    match argument:
        case LiteralArgument():
            return _literal(argument.value)
        case ParameterArgument():
            default = "".join(f" or {_literal(value)}" for value in argument.default)
            return f"the caller's {argument.parameter_name}{default}"
        case ReferenceArgument():
            how = "from" if argument.path is not None else "computed from"
            origin = f" ({how} {argument.node_id})" if argument.node_id else ""
            return f"{short(argument.expression)}{origin}"
        case _:
            return short(_composed(argument))


def _composed(argument: ObjectArgument | ArrayArgument) -> str:
    if isinstance(argument, ObjectArgument):
        fields = (f"{key}: {shown(value)}" for key, value in argument.fields.items())
        return f"{{{', '.join(fields)}}}"
    return f"[{', '.join(map(shown, argument.items))}]"


def first_sentence(text: str) -> str:
    """Return the first sentence of a server's own words, on one line and not too long."""
    sentence = _SENTENCE_END.split(text.strip(), maxsplit=1)[0]
    return visible(sentence[:_MAX_SENTENCE])


def _literal(value: JsonValue) -> str:
    return short(json.dumps(value, ensure_ascii=False))


def short(text: str) -> str:
    """Truncate a long text and escape everything invisible in it."""
    return visible(text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}…")
