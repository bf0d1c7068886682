"""Calls as approvers see them: every call site of a program, with every argument."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import Field, JsonValue, StringConstraints

from pml_common.binding.canonical import canonical, sha256_of
from pml_common.binding.granting import LONGEST, granted_nodes
from pml_common.binding.patterns import Fields, Known, Pattern
from pml_common.binding.resolve import fields_of, node_key
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Contract
from pml_common.contracts.capability import NestedCapability
from pml_common.contracts.decision import STRICTNESS, Verdict
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    CallNode,
    CapabilityNode,
    DynamicCall,
    LiteralArgument,
    ObjectArgument,
    TaskNode,
)
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.shown_arguments import ArgumentRenderer, ShownArgument
from pml_gateway.domain.api.shown_text import TextRenderer

MAX_CALLS: Final = 5_000
MAX_ARGUMENTS: Final = 20_000
"""Limits of a listing."""

TEXT_BUDGET: Final = 8_000_000
"""Characters of long texts in a listing that shows them whole."""

_MAX_DEPTH: Final = 3
"""Levels of nested calls of capabilities."""

HowOften = Literal["once", "any number of times"]


def _is_none(value: object) -> bool:
    return value is None


class ShownCall(Contract):
    """A call of a tool, or of a capability (`cap:<name>`). `node_id` is its path through calls of
    capabilities (`n2/n1`); line and column refer to the program, or to the capability `within`.
    `verdict`: `ask` if it needs this approval, `allow` if it runs anyway. `why` is the reason why
    a run is parked at it."""

    node_id: str
    tool: str
    verdict: Verdict
    within: str | None = Field(default=None, exclude_if=_is_none)
    line: int | None
    column: int | None
    how_often: HowOften
    why: str | None = Field(default=None, exclude_if=_is_none)
    arguments: tuple[ShownArgument, ...]


class ShownToApprover(Contract):
    """The calls that the approver saw: their digest, and whether they were shown whole."""

    digest: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    whole: bool


@dataclass(frozen=True)
class ShownCalls:
    """Calls to show to an approver; `dynamic` are those whose tool is only known at run time.
    `is_all`: all calls are listed."""

    calls: tuple[ShownCall, ...]
    dynamic: tuple[DynamicCall, ...] = ()
    is_all: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether all calls are listed and nothing in them is cut."""
        given = (argument for call in self.calls for argument in call.arguments)
        return self.is_all and all(argument.is_whole for argument in given)

    def digest(self) -> str:
        """Return the SHA-256, hex. Long texts that are cut count by their digests."""
        content = {
            "calls": [call.model_dump(mode="json") for call in self.calls],
            "dynamic": [call.model_dump(mode="json") for call in self.dynamic],
            "is_all": self.is_all,
        }
        canonical_json = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical_json.encode()).hexdigest()


def shown_calls_of_program(
    analysis: ExecutionAnalyzed, args: JsonObject, *, whole: bool
) -> ShownCalls:
    """Return the calls of a program that has not begun, callers before the calls inside them."""
    walk = _Walk(analysis, TextRenderer(TEXT_BUDGET if whole else 0))
    calls: list[ShownCall] = []
    for call in walk.calls(walk.own, Known((args,), parameter=""), _Place()):
        if len(calls) == MAX_CALLS or walk.arguments.count > MAX_ARGUMENTS:
            return ShownCalls(tuple(calls), analysis.dynamic_calls, is_all=False)
        calls.append(call)
    return ShownCalls(tuple(calls), analysis.dynamic_calls)


def shown_calls_of_nodes(
    analysis: ExecutionAnalyzed,
    args: JsonObject,
    calls: Iterable[tuple[CallNode, Mapping[str, Argument]]],
    texts: TextRenderer,
) -> tuple[ShownCall, ...]:
    """Return some of a program's own calls, with the arguments as known by now."""
    walk, given = _Walk(analysis, texts), Known((args,), parameter="")
    return tuple(
        walk.shown(node, fields_of(known, given, ""), _Place(), repeats=node.repeats)
        for node, known in calls
    )


@dataclass(frozen=True)
class _Place:
    """The calls of capabilities that enclose a call."""

    prefix: str = ""
    capability: NestedCapability | None = None
    top: str | None = None
    repeats: bool = False
    depth: int = 0


class _Walk:
    """Walks a program and the capabilities that it calls."""

    def __init__(self, analysis: ExecutionAnalyzed, texts: TextRenderer) -> None:
        nested, nodes = analysis.capabilities, analysis.structure.nodes
        self.own = [node for node in nodes if isinstance(node, TaskNode | CapabilityNode)]
        self._nested = {one.capability_id: one for one in nested}
        self._verdicts = _verdicts(analysis)
        several = [self.own, *(one.nodes for one in nested)]
        tools = {node.tool for nodes in several for node in nodes if isinstance(node, TaskNode)}
        self._granted = granted_nodes(nodes, nested, tools)
        self.arguments = ArgumentRenderer(
            texts, dict(_long(node for nodes in several for node in nodes))
        )

    def calls(
        self, nodes: Sequence[CallNode], given: Pattern, place: _Place
    ) -> Iterator[ShownCall]:
        """Yield the calls of a program or capability that was called with the arguments `given`."""
        inside = place.capability
        for node in nodes:
            granted = self._granted.get(node_key(inside.capability_id if inside else None, node.id))
            arguments = granted.arguments if granted else node.arguments
            fields = fields_of(arguments, given, place.prefix)
            repeats = place.repeats or node.repeats
            yield self.shown(node, fields, place, repeats=repeats)
            called = self._called(node)
            if called is not None and place.depth < _MAX_DEPTH:
                further = _Place(
                    prefix=f"{place.prefix}{node.id}/",
                    capability=called,
                    top=place.top or node.id,
                    repeats=repeats,
                    depth=place.depth + 1,
                )
                yield from self.calls(called.nodes, fields, further)

    def _called(self, node: CallNode) -> NestedCapability | None:
        if not isinstance(node, CapabilityNode) or node.capability_id is None:
            return None
        return self._nested.get(UUID(node.capability_id))

    def shown(self, node: CallNode, fields: Fields, place: _Place, *, repeats: bool) -> ShownCall:
        """Build one call with its resolved arguments."""
        if isinstance(node, TaskNode):
            tool = verdict_key = node.tool
        else:
            tool, verdict_key = f"cap:{node.name}", place.top or node.id
        return ShownCall(
            node_id=f"{place.prefix}{node.id}",
            tool=tool,
            verdict=self._verdicts.get(verdict_key, "allow"),
            within=place.capability.name if place.capability else None,
            line=node.line,
            column=node.column,
            how_often="any number of times" if repeats else "once",
            arguments=self.arguments.of_fields(fields),
        )


def _verdicts(analysis: ExecutionAnalyzed) -> Mapping[str, Verdict]:
    """Return the strictest verdict for each tool, and for each node that reaches it."""
    found: dict[str, Verdict] = {}

    def note(names: Iterable[str], verdict: Verdict) -> None:
        for name in names:
            if STRICTNESS[verdict] >= STRICTNESS[found.get(name, "allow")]:
                found[name] = verdict

    for tool in analysis.decision.tools:
        note((tool.tool, *tool.node_ids), tool.verdict)
    for capability in analysis.capabilities:
        note(capability.node_ids, capability.verdict)
    return found


def _long(nodes: Iterable[CallNode]) -> Iterator[tuple[str, JsonValue]]:
    """Yield long literals by the digests that grants hold instead of them."""
    for node in nodes:
        for argument in node.arguments.values():
            yield from _long_in(argument)


def _long_in(argument: Argument) -> Iterator[tuple[str, JsonValue]]:
    match argument:
        case LiteralArgument(value=value) if len(canonical(value)) > LONGEST:
            yield sha256_of(value), value
        case ObjectArgument(fields=fields):
            for one in fields.values():
                yield from _long_in(one)
        case ArrayArgument(items=items):
            for one in items:
                yield from _long_in(one)
        case _:
            return
