"""Lifting of literals in one program, then its analysis: the public entry point."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pml_analysis.analysis import NO_CAPABILITIES, Analysis, Rejection, analyze
from pml_analysis.decision.capabilities import Library
from pml_analysis.names.origins import Origins
from pml_analysis.names.scopes import resolve_scopes
from pml_analysis.parameters.lifting import LiftedParameter, Rewritten, lift_literals
from pml_analysis.parameters.parameter_uses import ParameterUses
from pml_analysis.structure.calls import CallSite, find_calls
from pml_analysis.structure.units import find_units
from pml_analysis.syntax.parser import parse, view
from pml_analysis.syntax.source import Position, Source
from pml_analysis.text.limits import DEFAULT_LIMITS, Limits
from pml_common.contracts.decision import Policy
from pml_common.contracts.structure import CapabilityNode, StaticStructure, TaskNode
from pml_common.contracts.tool import JsonObject, ToolDefinition


@dataclass(frozen=True)
class Lifted:
    """A program equivalent to the given one while it is called without the new parameters.

    `parameters` are those made from literals, by name; the schema has them among the others.
    """

    code: str
    parameters_schema: JsonObject
    parameters: Mapping[str, LiftedParameter]


def lifted(
    code: str,
    *,
    tools: Sequence[ToolDefinition],
    policy: Policy,
    limits: Limits = DEFAULT_LIMITS,
    capabilities: Library = NO_CAPABILITIES,
) -> Lifted | Rejection:
    """Lift the literal arguments of a program's calls into parameters with defaults.

    The called tools stay statically known: where a constant also selects the tool, constants stay.
    """

    def read(text: str) -> Analysis | Rejection:
        return analyze(text, tools=tools, policy=policy, limits=limits, capabilities=capabilities)

    before = read(code)
    if isinstance(before, Rejection):
        return before
    for rewritten in _attempts(code, before, limits):
        after = read(rewritten.code)
        if isinstance(after, Analysis) and _calls_of(after) == _calls_of(before):
            return Lifted(rewritten.code, after.parameters_schema, rewritten.parameters)
    return Lifted(code, before.parameters_schema, {})


def _attempts(code: str, analysis: Analysis, limits: Limits) -> Iterator[Rewritten]:
    """Yield the program with as much lifted as possible, then with less."""
    source = Source(code)
    tree = view(parse(source), source, nesting=limits.nesting)
    scopes = resolve_scopes(tree)
    origins = Origins(tree, scopes)
    uses = ParameterUses(origins, find_units(tree, scopes))
    calls = list(_sites(origins, analysis.structure))
    taken = _names(analysis.parameters_schema)
    for through_names in (True, False):
        yield lift_literals(uses, calls, taken, through_names=through_names)


def _sites(origins: Origins, structure: StaticStructure) -> Iterator[tuple[str, CallSite]]:
    """Return the call sites by node id; one that makes several nodes occurs several times."""
    tree = origins.tree
    sites = {tree.position(site.callee): site for site in find_calls(tree, origins).sites}
    for node in structure.nodes:
        if isinstance(node, TaskNode | CapabilityNode):
            yield node.id, sites[Position(node.line, node.column)]


def _names(schema: JsonObject) -> list[str]:
    properties = schema["properties"]
    return list(properties) if isinstance(properties, dict) else []


def _calls_of(analysis: Analysis) -> tuple[list[tuple[str, str]], int]:
    """Return the call targets by node, and the number of dynamic calls."""
    calls = [
        (node.id, node.tool if isinstance(node, TaskNode) else node.name)
        for node in analysis.structure.nodes
        if isinstance(node, TaskNode | CapabilityNode)
    ]
    return calls, len(analysis.dynamic_calls)
