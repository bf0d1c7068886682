"""Decision pass: the verdict on a program, and the reasons that an approver reads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from pml_analysis.decision.capabilities import Reached, names_of
from pml_analysis.decision.toolbox import Tools
from pml_analysis.decision.wording import calls, capability_calls, short
from pml_common.binding.granting import known_arguments
from pml_common.contracts.decision import (
    STRICTNESS,
    Decision,
    DryRun,
    Policy,
    ToolDecision,
    Verdict,
)
from pml_common.contracts.structure import DynamicCall, TaskNode
from pml_common.contracts.tool import ToolDefinition

_ONLY_THEN: Final = (
    "is known only when it runs; it may reach the tools named here and those that need no "
    "approval: ask."
)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool, the tasks that call it, in source order, and the capabilities that do; at least one
    of either."""

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
    """Return the strictest verdict of all tools, those of nested capabilities included, and of all
    rules on capabilities, the program itself included where it is `known_as` one.

    A call known only at run time is at least asked for; it may then reach those tools of the
    catalog that need no approval, and others once a person approves the very call. In a dry run
    mocked calls need no approval.
    """
    known = Tools.of(catalogue)
    untold = [*map(_dynamic_reason, dynamic), *_nested_dynamic(nested)]
    tools = [
        _decide_tool(use, policy, known, dry_run, is_any=bool(untold))
        for use in _with_nested(uses, known, nested)
    ]
    said: list[tuple[Verdict, str]] = [(tool.verdict, tool.reason) for tool in tools]
    said += [*_on_itself(known_as, policy), *_on_capabilities(nested, policy)]
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
    verdict = max(verdicts, key=STRICTNESS.__getitem__)
    reasons = tuple(reason for one, reason in said if one == verdict)
    return Decision(
        verdict=verdict,
        reasons=reasons or (_nothing(nested),),
        tools=tuple(tools),
        askable=askable,
    )


def _with_nested(uses: Sequence[ToolUse], known: Tools, nested: Sequence[Reached]) -> list[ToolUse]:
    """Merge the uses with the calls of capabilities, directly called tools first."""
    found = {use.tool.tool_id: use for use in uses}
    through: dict[str, list[Reached]] = {}
    for one in nested:
        for server, name in one.capability.tools:
            tool = known.by_server[server][name]
            found.setdefault(tool.tool_id, ToolUse(tool, ()))
            through.setdefault(tool.tool_id, []).append(one)
    return [replace(use, through=through.get(key, ())) for key, use in found.items()]


def _decide_tool(
    use: ToolUse, policy: Policy, known: Tools, dry_run: DryRun | None, *, is_any: bool
) -> ToolDecision:
    tool = use.tool
    verdict, why = _strictest(use, policy, is_any=is_any)
    mocked = verdict != "deny" and _mocked(tool, dry_run)
    if mocked:
        verdict, why = "allow", f"{why} In this dry run a mock answers it."
    made = [*use.tasks, *(node for one in use.through for node in one.nodes)]
    return ToolDecision(
        tool=tool.tool_id,
        verdict=verdict,
        reason=f"{calls(use.tool, use.tasks, use.through)} {why}",
        definition_hash=known.hash_of(tool),
        node_ids=tuple(dict.fromkeys(call.id for call in made)),
        mocked=mocked,
        read_only=bool(tool.annotations.read_only),
    )


def _strictest(use: ToolUse, policy: Policy, *, is_any: bool) -> tuple[Verdict, str]:
    """Return the strictest verdict on a tool's calls, the first call with it, and the reason;
    `is_any`: some calls have unknown arguments."""
    said: list[tuple[Verdict, str]] = []
    inside = [node for one in use.through for node in one.capability.nodes]
    of_tool = [n for n in inside if isinstance(n, TaskNode) and n.tool == use.tool.tool_id]
    for call in [*use.tasks, *of_tool]:
        known, is_all = known_arguments(call.arguments)
        said.append(policy.verdict_on(use.tool, known, is_all=is_all))
    if is_any or not said:  # some call has unknown arguments
        said.append(policy.verdict_on(use.tool))
    return max(said, key=lambda one: STRICTNESS[one[0]])


def _mocked(tool: ToolDefinition, dry_run: DryRun | None) -> bool:
    return dry_run is not None and dry_run.answers(tool)


def _on_itself(names: Sequence[str], policy: Policy) -> list[tuple[Verdict, str]]:
    verdict, why = policy.verdict_on_capability(names)
    return [] if verdict == "allow" else [(verdict, f"This is capability {names[0]}. {why}")]


def _on_capabilities(nested: Sequence[Reached], policy: Policy) -> list[tuple[Verdict, str]]:
    """Return the verdicts that rules on capabilities make stricter; for each capability once, by
    its nearest call."""
    found: dict[UUID, tuple[Verdict, str]] = {}
    for one in nested:
        verdict, why = policy.verdict_on_capability(names_of(one.capability))
        if verdict != "allow" and one.capability.id not in found:
            found[one.capability.id] = verdict, f"{capability_calls(one)} {why}"
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


def _dynamic_reason(call: DynamicCall) -> str:
    return f"Which tool {short(call.expression)} on line {call.line} reaches {_ONLY_THEN}"


def _nested_dynamic(nested: Sequence[Reached]) -> list[str]:
    """Return a reason for every call in a capability that is known only at run time, by its nearest
    call."""
    found: dict[tuple[UUID, str], str] = {}
    for one in nested:
        for expression in one.capability.dynamic:
            where = f"in capability {one.chain[-1]}, called from line {one.nodes[0].line},"
            reason = f"Which tool {short(expression)} {where} reaches {_ONLY_THEN}"
            found.setdefault((one.capability.id, expression), reason)
    return list(found.values())


def _nothing(nested: Sequence[Reached]) -> str:
    if nested:
        return "Neither the program nor a capability that it calls calls any tool."
    return "The program calls no tool."
