"""The gateway's own verdicts on tools: from policy and its own tool catalog, whatever verdicts an
analysis has.

The stricter of the policy at the request and the present one applies to a workflow.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pml_common.binding.granting import known_arguments
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.decision import (
    STRICTNESS,
    Decision,
    DryRun,
    Policy,
    PolicyRule,
    ToolDecision,
    Verdict,
)
from pml_common.contracts.structure import TaskNode
from pml_common.contracts.tool import JsonObject, ToolDefinition


@dataclass(frozen=True)
class Verdicts:
    """The `policies` of one workflow, the present one last, the tools that the gateway lists, and
    the requested dry run, if any."""

    policies: Sequence[Policy] = ()
    tools: Mapping[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])
    dry_run: DryRun | None = None

    def on(
        self, tool_id: str, known: JsonObject | None = None, *, is_all: bool = False
    ) -> tuple[Verdict, str] | None:
        """Return the strictest verdict on a call and its reason; None if the tool is not listed."""
        tool = self.tools.get(tool_id)
        if tool is None or not self.policies:
            return None
        said = [policy.verdict_on(tool, known, is_all=is_all) for policy in self.policies]
        return max(said, key=lambda one: STRICTNESS[one[0]])

    def mocked(self, analysis: ExecutionAnalyzed) -> set[str]:
        """Return the tools whose calls are mocked: by the request and, for tools that it lists,
        the gateway's own catalog."""
        said = {one.tool: one.mocked for one in analysis.decision.tools}
        if self.dry_run is None:
            return set()
        return {
            name
            for name in tools_named(analysis)
            if (self.dry_run.answers(self.tools[name]) if name in self.tools else said.get(name))
        }

    @property
    def revision(self) -> str:
        """The revision of the present policy."""
        return self.policies[-1].revision if self.policies else ""

    def standing(self, tools: Sequence[str]) -> tuple[PolicyRule, ...]:
        """Return the rules on these tools; none if the policy has changed since the request."""
        if len({policy.revision for policy in self.policies}) != 1:
            return ()
        rules = self.policies[-1].rules
        return tuple(rule for rule in rules if any(rule.speaks_of(tool) for tool in tools))

    @property
    def computed_parks(self) -> bool:
        """Whether calls with computed arguments park the run."""
        return any(policy.computed == "park" for policy in self.policies)


NO_VERDICTS: Final = Verdicts()
"""Verdicts of a gateway that lists no tools."""


def verdicts_of(
    policies: Sequence[Policy],
    tools: Sequence[str],
    find: Callable[[str], ToolDefinition | None],
    dry_run: DryRun | None = None,
) -> Verdicts:
    """Build the verdicts on some tools from what the gateway lists now."""
    found = ((tool_id, find(tool_id)) for tool_id in tools)
    distinct = {policy.revision: policy for policy in policies}
    return Verdicts(tuple(distinct.values()), {key: tool for key, tool in found if tool}, dry_run)


def tools_named(analysis: ExecutionAnalyzed | None) -> list[str]:
    """Return every tool that an analysis names."""
    if analysis is None:
        return []
    decided = [tool.tool for tool in analysis.decision.tools]
    return list(dict.fromkeys([*decided, *(task.tool for task in _tasks(analysis))]))


def with_stricter_verdicts(analysis: ExecutionAnalyzed, verdicts: Verdicts) -> ExecutionAnalyzed:
    """Return the analysis with the gateway's own verdicts where they are stricter."""
    decision, mocked = analysis.decision, verdicts.mocked(analysis)
    own = {
        tool: verdict
        for tool in tools_named(analysis)
        if tool not in mocked and (verdict := _verdict(analysis, tool, verdicts)) is not None
    }
    tools = tuple(_stricter(one, own.get(one.tool)) for one in decision.tools)
    missing = own.keys() - {one.tool for one in decision.tools}
    tools += tuple(_unlisted(tool, verdicts.tools[tool], own[tool]) for tool in sorted(missing))
    changed = [one for one in tools if one not in decision.tools]
    said: list[Verdict] = [decision.verdict, *(one.verdict for one in tools)]
    verdict = max(said, key=STRICTNESS.__getitem__)
    if not changed and verdict == decision.verdict:
        return analysis
    kept = decision.reasons if verdict == decision.verdict else ()
    reasons = (*kept, *(one.reason for one in changed if one.verdict == verdict))
    better = Decision(verdict=verdict, reasons=reasons, tools=tools)
    return analysis.model_copy(update={"decision": better})


def bound_tools(analysis: ExecutionAnalyzed, verdicts: Verdicts) -> tuple[str, ...]:
    """Return the tools whose calls must equal what was shown."""
    mocked = verdicts.mocked(analysis)
    said = {tool: verdicts.on(tool) for tool in tools_named(analysis) if tool not in mocked}
    return tuple(
        sorted(tool for tool, verdict in said.items() if verdict and verdict[0] != "allow")
    )


def denied_now(analysis: ExecutionAnalyzed | None, verdicts: Verdicts) -> str | None:
    """Return why the present policy denies a program that waits for approval, or None."""
    if analysis is None:
        return None
    for tool in tools_named(analysis):
        verdict = _verdict(analysis, tool, verdicts)
        if verdict is not None and verdict[0] == "deny":
            return f"{tool}: {verdict[1]}"
    return None


def _tasks(analysis: ExecutionAnalyzed) -> list[TaskNode]:
    nested = (node for capability in analysis.capabilities for node in capability.nodes)
    nodes = (*analysis.structure.nodes, *nested)
    return [node for node in nodes if isinstance(node, TaskNode)]


def _verdict(
    analysis: ExecutionAnalyzed, tool: str, verdicts: Verdicts
) -> tuple[Verdict, str] | None:
    """Return the strictest verdict on the calls of a tool in the analysis; without one, on any
    call."""
    tasks = [task for task in _tasks(analysis) if task.tool == tool]
    said = [
        verdicts.on(tool, known, is_all=is_all)
        for known, is_all in (known_arguments(task.arguments) for task in tasks)
    ]
    found = [one for one in said or [verdicts.on(tool)] if one is not None]
    return max(found, key=lambda one: STRICTNESS[one[0]], default=None)


def _stricter(decided: ToolDecision, own: tuple[Verdict, str] | None) -> ToolDecision:
    if own is None or STRICTNESS[own[0]] <= STRICTNESS[decided.verdict]:
        return decided
    return decided.model_copy(
        update={"verdict": own[0], "reason": f"Calls {decided.tool}. {own[1]}"}
    )


def _unlisted(tool_id: str, tool: ToolDefinition, own: tuple[Verdict, str]) -> ToolDecision:
    return ToolDecision(
        tool=tool_id,
        verdict=own[0],
        reason=f"Calls {tool_id}. {own[1]}",
        definition_hash=tool.definition_hash,
        node_ids=(),
        read_only=bool(tool.annotations.read_only),
    )
