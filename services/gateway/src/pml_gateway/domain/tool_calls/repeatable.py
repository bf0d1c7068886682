"""Repeatable tool calls, and the outcome of a call that was made twice."""

from collections.abc import Callable

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.error import Fault
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import ToolDefinition


class NotSent(ToolOutcome):
    """The outcome of a call that its server certainly never received."""

    fault: Fault | None = "environment"


def repeatable(tool: ToolDefinition | None) -> bool:
    """Whether a call of it may be made again if the outcome of the first one is unknown."""
    return only_reads(tool) or (tool is not None and bool(tool.annotations.idempotent))


def only_reads(tool: ToolDefinition | None) -> bool:
    """Whether a call of it changes nothing."""
    return tool is not None and bool(tool.annotations.read_only)


def repeatable_among(
    analysis: ExecutionAnalyzed | None, find: Callable[[str], ToolDefinition | None]
) -> tuple[str, ...]:
    """Return the tools of an analysed program whose calls may be made again."""
    if analysis is None:
        return ()
    tools = (tool.tool for tool in analysis.decision.tools)
    return tuple(tool_id for tool_id in tools if repeatable(find(tool_id)))


def read_only_among(
    analysis: ExecutionAnalyzed | None, find: Callable[[str], ToolDefinition | None]
) -> tuple[str, ...]:
    """Return the tools of an analysed program that only read."""
    return tuple(
        tool_id for tool_id in repeatable_among(analysis, find) if only_reads(find(tool_id))
    )


def after_unknown(first: ToolOutcome, second: ToolOutcome) -> ToolOutcome:
    """Return the outcome of a call that was made again because that of the first was unknown: the
    second one's, unless that was never sent or is unknown, too."""
    if second.status == "timeout" or isinstance(second, NotSent):
        why = "a second try got no answer"
        if isinstance(second, NotSent):
            why = "its server could not be reached for a second try"
        return first.model_copy(update={"message": f"{first.message or 'unknown'}; {why}"})
    return second


def outcome_of_attempt(
    call: CallTool, outcome: ToolOutcome, tool: ToolDefinition | None
) -> ToolOutcome:
    """Return the outcome of a call. If nothing was sent now, but may have been earlier, the outcome
    is unknown: earlier by a first attempt, or by this one if it was asked for before and its
    beginning was not stored. A call that only reads has had no effect in any case."""
    was_stored = not repeatable(tool)
    is_first = call.attempt == "first" and (was_stored or call.asked_first_at is not None)
    if is_first or only_reads(tool) or not isinstance(outcome, NotSent):
        return outcome
    message = f"{call.tool} was called, and it is unknown whether it took effect"
    return after_unknown(ToolOutcome(status="unknown", message=message), outcome)
