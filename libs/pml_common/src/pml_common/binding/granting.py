"""The nodes of a grant, from the analysis of a program."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

from pml_common.binding.canonical import canonical, sha256_of
from pml_common.binding.resolve import SPREAD, node_key
from pml_common.contracts.capability import NestedCapability
from pml_common.contracts.grant import GrantedNode
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    CallNode,
    CapabilityNode,
    LiteralArgument,
    Node,
    ObjectArgument,
    ReferenceArgument,
    TaskNode,
)
from pml_common.contracts.tool import JsonObject

LONGEST: Final = 1024
"""Most bytes of canonical JSON of a literal in a grant; longer ones are replaced by a digest."""


def granted_nodes(
    nodes: Iterable[Node], nested: Sequence[NestedCapability], bound: Collection[str]
) -> dict[str, GrantedNode]:
    """Return the calls of bound tools, those of capabilities that lead to them, and those whose
    results appear in their arguments."""
    calls = {capability.capability_id: capability.nodes for capability in nested}
    leading = _leading(calls, bound)
    own = [node for node in nodes if isinstance(node, TaskNode | CapabilityNode)]
    programs: dict[UUID | None, Sequence[CallNode]] = {None: own}
    programs |= {key: several for key, several in calls.items() if key in leading}
    granted: dict[str, GrantedNode] = {}
    for capability_id, several in programs.items():
        wanted = [node for node in several if _is_wanted(node, bound, leading)]
        sources = _sources(wanted, {node.id: node for node in several})
        for node in several:
            if node in wanted or node.id in sources:
                is_source = node.id in sources
                granted[node_key(capability_id, node.id)] = _granted(node, source=is_source)
    return granted


def _sources(wanted: Sequence[CallNode], nodes: Mapping[str, CallNode]) -> set[str]:
    """Return the nodes whose results appear in arguments of the wanted ones, transitively."""
    found: set[str] = set()
    left = list(wanted)
    while left:
        for argument in left.pop().arguments.values():
            for node_id in _named(argument):
                if node_id in nodes and node_id not in found:
                    found.add(node_id)
                    left.append(nodes[node_id])
    return found


def _named(argument: Argument) -> Iterator[str]:
    """Yield the nodes whose results appear in a bound argument."""
    match argument:
        case ReferenceArgument(node_id=str(node_id), path=tuple()):
            yield node_id
        case ObjectArgument():
            for one in argument.fields.values():
                yield from _named(one)
        case ArrayArgument():
            for one in argument.items:
                yield from _named(one)
        case _:
            return


def _is_wanted(node: CallNode, bound: Collection[str], leading: Collection[UUID]) -> bool:
    if isinstance(node, TaskNode):
        return node.tool in bound
    return node.capability_id is not None and UUID(node.capability_id) in leading


def _leading(calls: Mapping[UUID, Sequence[CallNode]], bound: Collection[str]) -> set[UUID]:
    """Return the capabilities from which calls lead to a bound tool, transitively."""
    leading: set[UUID] = set()
    while True:
        more = {
            capability_id
            for capability_id, nodes in calls.items()
            if capability_id not in leading
            and any(_is_wanted(node, bound, leading) for node in nodes)
        }
        if not more:
            return leading
        leading |= more


def _granted(node: CallNode, *, source: bool) -> GrantedNode:
    if isinstance(node, CapabilityNode):
        capability_id = UUID(node.capability_id or "")
        return GrantedNode(
            capability_id=capability_id, arguments=node.arguments, repeats=node.repeats
        )
    arguments = {name: _short(argument) for name, argument in node.arguments.items()}
    return GrantedNode(tool=node.tool, arguments=arguments, repeats=node.repeats, source=source)


def _short(argument: Argument) -> Argument:
    match argument:
        case LiteralArgument() if len(canonical(argument.value)) > LONGEST:
            return LiteralArgument(value=None, sha256=sha256_of(argument.value))
        case ObjectArgument():
            return ObjectArgument(fields={k: _short(one) for k, one in argument.fields.items()})
        case ArrayArgument():
            return ArrayArgument(items=tuple(_short(one) for one in argument.items))
        case _:
            return argument


def known_arguments(arguments: Mapping[str, Argument]) -> tuple[JsonObject, bool]:
    """Return the arguments of a call that are known before the run, and whether they are all."""
    known = {
        name: argument.value
        for name, argument in arguments.items()
        if isinstance(argument, LiteralArgument) and not name.startswith(SPREAD)
    }
    return known, len(known) == len(arguments)
