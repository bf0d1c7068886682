"""False statements of an analysis. Each lie takes the real analysis and returns another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    CapabilityNode,
    LiteralArgument,
    Node,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
    StaticStructure,
    TaskNode,
)

Change = Callable[[TaskNode | CapabilityNode], TaskNode | CapabilityNode | None]
"""The replacement of a call; None: the call is omitted."""


@dataclass(frozen=True)
class Lie:
    """One kind of lie; `runs` is the replaced text, where another text runs."""

    analysis: ExecutionAnalyzed
    runs: str

    def calls(self, change: Change) -> ExecutionAnalyzed:
        """Apply `change` to every call of the program and of its capabilities."""
        structure = self.analysis.structure
        nodes = _changed(structure.nodes, change)
        kept = {node.id for node in nodes}
        edges = tuple(edge for edge in structure.edges if {edge.from_, edge.to} <= kept)
        nested = tuple(
            one.model_copy(update={"nodes": _changed(one.nodes, change)})
            for one in self.analysis.capabilities
        )
        told = {"structure": StaticStructure(nodes=nodes, edges=edges), "capabilities": nested}
        return self.analysis.model_copy(update=told)

    @property
    def asked(self) -> set[str]:
        """The tools that need approval."""
        return {one.tool for one in self.analysis.decision.tools if one.verdict == "ask"}


def _changed(nodes: Sequence[Node], change: Change) -> tuple[Node, ...]:
    told = [change(one) if isinstance(one, TaskNode | CapabilityNode) else one for one in nodes]
    return tuple(one for one in told if one is not None)


def _arguments(lie: Lie, told: Callable[[Argument], Argument]) -> ExecutionAnalyzed:
    def change(node: TaskNode | CapabilityNode) -> TaskNode | CapabilityNode:
        arguments = {name: told(one) for name, one in node.arguments.items()}
        return node.model_copy(update={"arguments": arguments})

    return lie.calls(change)


def _other(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return "/shown"
        case bool() | None:
            return not value
        case int() | float():
            return value + 1
        case list():
            return [_other(one) for one in value]
        case dict():
            return {name: _other(one) for name, one in value.items()}


def literals(lie: Lie) -> ExecutionAnalyzed:
    """Other literals; and literals in place of parameters."""

    def told(argument: Argument) -> Argument:
        match argument:
            case LiteralArgument():
                return LiteralArgument(value=_other(argument.value))
            case ObjectArgument():
                fields = {name: told(one) for name, one in argument.fields.items()}
                return ObjectArgument(fields=fields)
            case ArrayArgument():
                return ArrayArgument(items=tuple(map(told, argument.items)))
            case _:
                return LiteralArgument(value="/shown")

    return _arguments(lie, told)


def parameters(lie: Lie) -> ExecutionAnalyzed:
    """Every argument is the caller's."""
    return _arguments(lie, lambda _: ParameterArgument(parameter_name="safe", path=("safe",)))


def references(lie: Lie) -> ExecutionAnalyzed:
    """Every argument comes from a result."""
    tasks = [node for node in lie.analysis.structure.nodes if isinstance(node, TaskNode)]
    node_id = next((node.id for node in tasks if node.tool not in lie.asked), "n1")
    return _arguments(
        lie,
        lambda _: ReferenceArgument(expression="seen.path", node_id=node_id, path=("path",)),
    )


def without_arguments(lie: Lie) -> ExecutionAnalyzed:
    """Calls without any argument."""
    return lie.calls(lambda node: node.model_copy(update={"arguments": {}}))


def fewer(lie: Lie) -> ExecutionAnalyzed:
    """Omit the calls that need approval, and their tools."""
    asked = lie.asked

    def change(node: TaskNode | CapabilityNode) -> TaskNode | CapabilityNode | None:
        return None if isinstance(node, CapabilityNode) or node.tool in asked else node

    told, decision = lie.calls(change), lie.analysis.decision
    tools = tuple(one for one in decision.tools if one.tool not in asked)
    decided = decision.model_copy(update={"verdict": "allow", "tools": tools, "reasons": ()})
    return told.model_copy(update={"decision": decided, "dynamic_calls": ()})


def first_only(lie: Lie) -> ExecutionAnalyzed:
    """Of the calls that need approval, show only the first."""
    seen: list[str] = []

    def change(node: TaskNode | CapabilityNode) -> TaskNode | CapabilityNode | None:
        if isinstance(node, TaskNode) and node.tool not in lie.asked:
            return node
        seen.append(node.id)
        return node if len(seen) == 1 else None

    return lie.calls(change)


def once(lie: Lie) -> ExecutionAnalyzed:
    """Every call is made at most once."""
    return lie.calls(lambda node: node.model_copy(update={"repeats": False}))


def often(lie: Lie) -> ExecutionAnalyzed:
    """Every call may be repeated."""
    return lie.calls(lambda node: node.model_copy(update={"repeats": True}))


def allowed(lie: Lie) -> ExecutionAnalyzed:
    """No call needs approval."""
    decision = lie.analysis.decision
    tools = tuple(
        one.model_copy(update={"verdict": "allow", "read_only": True}) for one in decision.tools
    )
    decided = decision.model_copy(update={"verdict": "allow", "tools": tools, "reasons": ()})
    nested = tuple(one.model_copy(update={"verdict": "allow"}) for one in lie.analysis.capabilities)
    return lie.analysis.model_copy(update={"decision": decided, "capabilities": nested})


def swapped(lie: Lie) -> ExecutionAnalyzed:
    """The arguments of each call are those of the next."""
    calls = [
        node for node in lie.analysis.structure.nodes if isinstance(node, TaskNode | CapabilityNode)
    ]
    following = zip(calls, [*calls[1:], *calls[:1]], strict=True)
    given = {node.id: other.arguments for node, other in following}
    return lie.calls(
        lambda node: node.model_copy(update={"arguments": given.get(node.id, node.arguments)})
    )


def read_instead(lie: Lie) -> ExecutionAnalyzed:
    """Calls that need approval are shown as calls of a read-only tool."""

    def change(node: TaskNode | CapabilityNode) -> TaskNode | CapabilityNode:
        if isinstance(node, CapabilityNode) or node.tool not in lie.asked:
            return node
        return node.model_copy(update={"tool": f"{node.tool.partition(':')[0]}:read"})

    return lie.calls(change)


def other_text(lie: Lie) -> ExecutionAnalyzed:
    """Another text runs than the analysed one."""
    return lie.analysis.model_copy(update={"instrumented": lie.runs, "insertions": ()})


def other_capabilities(lie: Lie) -> ExecutionAnalyzed:
    """Another text runs in the capabilities than the analysed one."""
    injected = tuple(
        one.model_copy(update={"instrumented": lie.runs, "insertions": ()})
        for one in lie.analysis.injected
    )
    return lie.analysis.model_copy(update={"injected": injected})


def dry(lie: Lie) -> ExecutionAnalyzed:
    """The run is a dry run with mocks."""
    decision = allowed(lie).decision
    tools = tuple(one.model_copy(update={"mocked": True}) for one in decision.tools)
    told = {"decision": decision.model_copy(update={"tools": tools}), "dry_run": True}
    return lie.analysis.model_copy(update=told)


def everything(lie: Lie) -> ExecutionAnalyzed:
    """Another text runs, none of its calls is shown, and nothing needs approval."""
    text = Lie(other_text(lie), lie.runs)
    return allowed(Lie(other_capabilities(Lie(fewer(text), lie.runs)), lie.runs))


NOT_TAKEN: Final = "dry"
"""A lie that is detected: its analysis is dropped, and the workflow waits for another."""

LIES: Final[dict[str, Callable[[Lie], ExecutionAnalyzed]]] = {
    told.__name__: told
    for told in (
        literals,
        parameters,
        references,
        without_arguments,
        fewer,
        first_only,
        once,
        often,
        allowed,
        swapped,
        read_instead,
        other_text,
        other_capabilities,
        dry,
        everything,
    )
}
