"""Decision pass (A11): may the program run, and what a person should know to say so."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pml_common.contracts.decision import Decision, Policy, ToolDecision, Verdict
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    DynamicCall,
    LiteralArgument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
    TaskNode,
)
from pml_common.contracts.tool import ToolDefinition

_STRICTNESS: Final[dict[Verdict, int]] = {"allow": 0, "ask": 1, "deny": 2}
_SENTENCE_END: Final = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s|\n")
_LONGEST_SENTENCE: Final = 160
_LONGEST_VALUE: Final = 60
_MOST_PLACES: Final = 3


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool and the tasks that call it, in source order; at least one."""

    tool: ToolDefinition
    tasks: Sequence[TaskNode]


def decide(
    uses: Sequence[ToolUse],
    dynamic: Sequence[DynamicCall],
    policy: Policy,
    catalogue: Sequence[ToolDefinition] = (),
) -> Decision:
    """The strictest verdict of all tools; a call that nobody can name is asked for at least, and
    may then reach those of the catalogue that need no approval."""
    tools = tuple(_decide_tool(use, policy) for use in uses)
    if dynamic:
        used = {tool.tool for tool in tools}
        others = [tool for tool in catalogue if tool.tool_id not in used]
        tools += tuple(
            _within_reach(tool) for tool in others if policy.verdict_on(tool)[0] == "allow"
        )
    verdicts: list[Verdict] = ["ask" if dynamic else "allow", *(tool.verdict for tool in tools)]
    verdict = max(verdicts, key=_STRICTNESS.__getitem__)
    reasons = [tool.reason for tool in tools if tool.verdict == verdict and tool.node_ids]
    if verdict == "ask":
        reasons += [_dynamic_reason(call) for call in dynamic]
    return Decision(
        verdict=verdict,
        reasons=tuple(reasons or ["The program calls no tool."]),
        tools=tools,
    )


def _decide_tool(use: ToolUse, policy: Policy) -> ToolDecision:
    tool = use.tool
    verdict, why = policy.verdict_on(tool)
    return ToolDecision(
        tool=tool.tool_id,
        verdict=verdict,
        reason=f"{_what(use)} {why}",
        definition_hash=tool.definition_hash,
        node_ids=tuple(task.id for task in use.tasks),
    )


def _within_reach(tool: ToolDefinition) -> ToolDecision:
    return ToolDecision(
        tool=tool.tool_id,
        verdict="allow",
        reason=f"A call that is known only when it runs may reach {tool.tool_id}.",
        definition_hash=tool.definition_hash,
        node_ids=(),
    )


def _what(use: ToolUse) -> str:
    """`Calls fs:write ("Writes a file.") on line 4 with path = "a.txt".`"""
    said = first_sentence(use.tool.description)
    quoted = f" ({json.dumps(said, ensure_ascii=False)})" if said else ""
    places = "; ".join(_place(task) for task in use.tasks[:_MOST_PLACES])
    more = len(use.tasks) - _MOST_PLACES
    rest = f"; and {more} more time{'s' if more > 1 else ''}" if more > 0 else ""
    return f"Calls {use.tool.tool_id}{quoted} {places}{rest}."


def _place(task: TaskNode) -> str:
    given = ", ".join(f"{key} = {shown(value)}" for key, value in task.arguments.items())
    return f"on line {task.line}{f' with {given}' if given else ''}"


def shown(argument: Argument) -> str:
    """An argument as a person should read it."""
    match argument:
        case LiteralArgument():
            return _short(json.dumps(argument.value, ensure_ascii=False))
        case ParameterArgument():
            return f"the caller's {argument.parameter_name}"
        case ReferenceArgument():
            origin = f" (from {argument.node_id})" if argument.node_id else ""
            return f"{_short(argument.expression)}{origin}"
        case _:
            return _short(_composed(argument))


def _composed(argument: ObjectArgument | ArrayArgument) -> str:
    if isinstance(argument, ObjectArgument):
        fields = (f"{key}: {shown(value)}" for key, value in argument.fields.items())
        return f"{{{', '.join(fields)}}}"
    return f"[{', '.join(map(shown, argument.items))}]"


def _dynamic_reason(call: DynamicCall) -> str:
    return (
        f"Which tool {_short(call.expression)} on line {call.line} reaches "
        "is known only when it runs; it may reach the tools named here and those that need no "
        "approval: ask."
    )


def first_sentence(text: str) -> str:
    """The first sentence of a server's own words, on one line and not too long."""
    sentence = _SENTENCE_END.split(text.strip(), maxsplit=1)[0]
    return _visible(sentence[:_LONGEST_SENTENCE])


def _short(text: str) -> str:
    return _visible(text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…")


def _visible(text: str) -> str:
    """Characters that print nothing, or turn the line round, are shown by number."""
    return text if text.isprintable() else "".join(map(_visible_character, text))


def _visible_character(char: str) -> str:
    return char if char.isprintable() else f"\\u{{{ord(char):x}}}"
