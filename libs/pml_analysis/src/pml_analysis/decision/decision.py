"""Decision pass (A11): may the program run, and what a person should know to say so."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from pml_analysis.decision.capabilities import Reached, names_of
from pml_analysis.decision.toolbox import Tools
from pml_common.contracts.decision import Decision, DryRun, Policy, ToolDecision, Verdict
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    CapabilityNode,
    DynamicCall,
    LiteralArgument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
    TaskNode,
)
from pml_common.contracts.tool import ToolDefinition
from pml_common.text.visible import visible

_STRICTNESS: Final[dict[Verdict, int]] = {"allow": 0, "ask": 1, "deny": 2}
_SENTENCE_END: Final = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s|\n")
_LONGEST_SENTENCE: Final = 160
_LONGEST_VALUE: Final = 60
_MOST_PLACES: Final = 3
_ONLY_THEN: Final = (
    "is known only when it runs; it may reach the tools named here and those that need no "
    "approval: ask."
)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool, the tasks that call it, in source order, and the capabilities that do; at least
    one of either."""

    tool: ToolDefinition
    tasks: Sequence[TaskNode]
    through: Sequence[Reached] = ()


def decide(
    uses: Sequence[ToolUse],
    dynamic: Sequence[DynamicCall],
    policy: Policy,
    catalogue: Sequence[ToolDefinition] = (),
    nested: Sequence[Reached] = (),
    known_as: Sequence[str] = (),
    dry_run: DryRun | None = None,
) -> Decision:
    """The strictest verdict of all tools, those of nested capabilities included, and of all rules
    on capabilities, the program itself included where it is `known_as` one; a call that nobody can
    name is asked for at least, and may then reach those tools of the catalogue that need no
    approval, and those that do once a person agrees to the very call. In a dry run nobody is asked
    about what mocks answer."""
    known = Tools.of(catalogue)
    tools = [_decide_tool(use, policy, known, dry_run) for use in _with_nested(uses, known, nested)]
    said: list[tuple[Verdict, str]] = [(tool.verdict, tool.reason) for tool in tools]
    said += [*_on_itself(known_as, policy), *_on_capabilities(nested, policy)]
    untold = [*map(_dynamic_reason, dynamic), *_nested_dynamic(nested)]
    if dry_run is None:
        said.extend(("ask", reason) for reason in untold)
    askable = dict[str, str]()
    if untold:
        used = {tool.tool for tool in tools}
        others = [tool for tool in known if tool.tool_id not in used]
        allowed = [tool for tool in others if policy.verdict_on(tool)[0] == "allow"]
        asked = [tool for tool in others if policy.verdict_on(tool)[0] == "ask"]
        if dry_run is None:
            askable = {tool.tool_id: known.hash_of(tool) for tool in asked}
        else:
            allowed += filter(dry_run.answers, asked)
        tools += [_within_reach(tool, known.hash_of(tool), dry_run) for tool in allowed]
    verdicts: list[Verdict] = ["allow", *(one for one, _ in said)]
    verdict = max(verdicts, key=_STRICTNESS.__getitem__)
    reasons = tuple(reason for one, reason in said if one == verdict)
    return Decision(
        verdict=verdict,
        reasons=reasons or (_nothing(nested),),
        tools=tuple(tools),
        askable=askable,
    )


def _with_nested(uses: Sequence[ToolUse], known: Tools, nested: Sequence[Reached]) -> list[ToolUse]:
    """The uses with what capabilities call, directly called tools first."""
    found = {use.tool.tool_id: use for use in uses}
    through: dict[str, list[Reached]] = {}
    for one in nested:
        for server, name in one.capability.tools:
            tool = known.by_server[server][name]
            found.setdefault(tool.tool_id, ToolUse(tool, ()))
            through.setdefault(tool.tool_id, []).append(one)
    return [replace(use, through=through.get(key, ())) for key, use in found.items()]


def _decide_tool(
    use: ToolUse, policy: Policy, known: Tools, dry_run: DryRun | None
) -> ToolDecision:
    tool = use.tool
    verdict, why = policy.verdict_on(tool)
    mocked = verdict != "deny" and _mocked(tool, dry_run)
    if mocked:
        verdict, why = "allow", f"{why} In this dry run a mock answers it."
    calls = [*use.tasks, *(node for one in use.through for node in one.nodes)]
    return ToolDecision(
        tool=tool.tool_id,
        verdict=verdict,
        reason=f"{_what(use)} {why}",
        definition_hash=known.hash_of(tool),
        node_ids=tuple(dict.fromkeys(call.id for call in calls)),
        mocked=mocked,
        read_only=bool(tool.annotations.read_only),
    )


def _mocked(tool: ToolDefinition, dry_run: DryRun | None) -> bool:
    return dry_run is not None and dry_run.answers(tool)


def _on_itself(names: Sequence[str], policy: Policy) -> list[tuple[Verdict, str]]:
    verdict, why = policy.verdict_on_capability(names)
    return [] if verdict == "allow" else [(verdict, f"This is capability {names[0]}. {why}")]


def _on_capabilities(nested: Sequence[Reached], policy: Policy) -> list[tuple[Verdict, str]]:
    """What rules make stricter; of each capability once, by its nearest call."""
    found: dict[UUID, tuple[Verdict, str]] = {}
    for one in nested:
        verdict, why = policy.verdict_on_capability(names_of(one.capability))
        if verdict != "allow" and one.capability.id not in found:
            last, *before = reversed(one.chain)
            way = "".join(f" through capability {name}" for name in before)
            what = f"Calls capability {last}{way} {_listed(map(_place, one.nodes))}."
            found[one.capability.id] = verdict, f"{what} {why}"
    return list(found.values())


def _within_reach(
    tool: ToolDefinition, definition_hash: str, dry_run: DryRun | None
) -> ToolDecision:
    return ToolDecision(
        tool=tool.tool_id,
        verdict="allow",
        reason=f"A call that is known only when it runs may reach {tool.tool_id}.",
        definition_hash=definition_hash,
        node_ids=(),
        mocked=_mocked(tool, dry_run),
        read_only=bool(tool.annotations.read_only),
    )


def _what(use: ToolUse) -> str:
    """`Calls fs:write ("Writes a file.") on line 4 with path = "a.txt".`"""
    said = first_sentence(use.tool.description)
    quoted = f" ({json.dumps(said, ensure_ascii=False)})" if said else ""
    places = [*map(_place, use.tasks), *(place for one in use.through for place in _through(one))]
    return f"Calls {use.tool.tool_id}{quoted} {_listed(places)}."


def _through(reached: Reached) -> Iterator[str]:
    """`through capability a:b on line 4 with x = 1, which calls c:d`."""
    first, *others = reached.chain
    onward = "".join(f", which calls {name}" for name in others)
    for node in reached.nodes:
        yield f"through capability {first} {_place(node)}{onward}"


def _listed(places: Iterable[str]) -> str:
    """The first few places, and how many more there are."""
    found = list(places)
    more = len(found) - _MOST_PLACES
    rest = f"; and {more} more time{'s' if more > 1 else ''}" if more > 0 else ""
    return "; ".join(found[:_MOST_PLACES]) + rest


def _place(call: TaskNode | CapabilityNode) -> str:
    given = ", ".join(f"{key} = {shown(value)}" for key, value in call.arguments.items())
    return f"on line {call.line}{f' with {given}' if given else ''}"


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
    return f"Which tool {_short(call.expression)} on line {call.line} reaches {_ONLY_THEN}"


def _nested_dynamic(nested: Sequence[Reached]) -> list[str]:
    """A reason for every call in a capability that only the run can tell, by its nearest call."""
    found: dict[tuple[UUID, str], str] = {}
    for one in nested:
        for expression in one.capability.dynamic:
            where = f"in capability {one.chain[-1]}, called from line {one.nodes[0].line},"
            reason = f"Which tool {_short(expression)} {where} reaches {_ONLY_THEN}"
            found.setdefault((one.capability.id, expression), reason)
    return list(found.values())


def _nothing(nested: Sequence[Reached]) -> str:
    if nested:
        return "Neither the program nor a capability that it calls calls any tool."
    return "The program calls no tool."


def first_sentence(text: str) -> str:
    """The first sentence of a server's own words, on one line and not too long."""
    sentence = _SENTENCE_END.split(text.strip(), maxsplit=1)[0]
    return visible(sentence[:_LONGEST_SENTENCE])


def _short(text: str) -> str:
    return visible(text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…")
