"""All calls of a program as an approver is shown them: every site, every argument."""

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
from pml_gateway.domain.api.shown_arguments import Arguments, ShownArgument
from pml_gateway.domain.api.shown_text import Texts

MOST_CALLS: Final = 5_000
MOST_ARGUMENTS: Final = 20_000
"""What is listed at most: nobody reads more."""

ROOM: Final = 8_000_000
"""Characters of long texts, where they are shown whole."""

_DEEPEST: Final = 3
"""How far calls of capabilities stand inside one another."""

HowOften = Literal["once", "any number of times"]


def _is_none(value: object) -> bool:
    return value is None


class ShownCall(Contract):
    """A call of a tool, or of a capability (`cap:<name>`). `node_id` leads to it through calls of
    capabilities (`n2/n1`); line and column are those in the program, or in the capability `within`.
    `verdict`: `ask` for what a person agrees to here, `allow` for what runs anyway. `why` tells why
    a run waits at it."""

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
    """What a decision says its maker was shown: the digest of it, and whether they saw it whole."""

    digest: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    whole: bool


@dataclass(frozen=True)
class Shown:
    """What an approver is shown; `dynamic` are calls that only the run can name. `is_all`: there
    are no more calls than are listed."""

    calls: tuple[ShownCall, ...]
    dynamic: tuple[DynamicCall, ...] = ()
    is_all: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether it is complete, and nothing in it was cut."""
        given = (argument for call in self.calls for argument in call.arguments)
        return self.is_all and all(argument.is_whole for argument in given)

    def digest(self) -> str:
        """SHA-256 of it, hex. Where long texts are cut their digests stand for them."""
        told = {
            "calls": [call.model_dump(mode="json") for call in self.calls],
            "dynamic": [call.model_dump(mode="json") for call in self.dynamic],
            "is_all": self.is_all,
        }
        content = json.dumps(told, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()


def program_shown(analysis: ExecutionAnalyzed, args: JsonObject, *, whole: bool) -> Shown:
    """The calls of a program that has not begun, callers before what they call."""
    walk = _Walk(analysis, Texts(ROOM if whole else 0))
    calls: list[ShownCall] = []
    for call in walk.calls(walk.own, Known((args,), parameter=""), _Place()):
        if len(calls) == MOST_CALLS or walk.arguments.count > MOST_ARGUMENTS:
            return Shown(tuple(calls), analysis.dynamic_calls, is_all=False)
        calls.append(call)
    return Shown(tuple(calls), analysis.dynamic_calls)


def calls_shown(
    analysis: ExecutionAnalyzed,
    args: JsonObject,
    calls: Iterable[tuple[CallNode, Mapping[str, Argument]]],
    texts: Texts,
) -> tuple[ShownCall, ...]:
    """Some of a program's own calls, with what is known of their arguments by now."""
    walk, given = _Walk(analysis, texts), Known((args,), parameter="")
    return tuple(
        walk.shown(node, fields_of(known, given, ""), _Place(), repeats=node.repeats)
        for node, known in calls
    )


@dataclass(frozen=True)
class _Place:
    """Inside which calls of capabilities one stands."""

    prefix: str = ""
    capability: NestedCapability | None = None
    top: str | None = None
    repeats: bool = False
    depth: int = 0


class _Walk:
    """Through a program and the capabilities that it calls."""

    def __init__(self, analysis: ExecutionAnalyzed, texts: Texts) -> None:
        nested, nodes = analysis.capabilities, analysis.structure.nodes
        self.own = [node for node in nodes if isinstance(node, TaskNode | CapabilityNode)]
        self._nested = {one.capability_id: one for one in nested}
        self._verdicts = _verdicts(analysis)
        several = [self.own, *(one.nodes for one in nested)]
        tools = {node.tool for nodes in several for node in nodes if isinstance(node, TaskNode)}
        self._granted = granted_nodes(nodes, nested, tools)
        self.arguments = Arguments(texts, dict(_long(node for nodes in several for node in nodes)))

    def calls(
        self, nodes: Sequence[CallNode], given: Pattern, place: _Place
    ) -> Iterator[ShownCall]:
        """The calls of one program or capability, under what it was given."""
        inside = place.capability
        for node in nodes:
            granted = self._granted.get(node_key(inside.capability_id if inside else None, node.id))
            arguments = granted.arguments if granted else node.arguments
            fields = fields_of(arguments, given, place.prefix)
            repeats = place.repeats or node.repeats
            yield self.shown(node, fields, place, repeats=repeats)
            called = self._called(node)
            if called is not None and place.depth < _DEEPEST:
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
        """One call, with its resolved arguments."""
        if isinstance(node, TaskNode):
            tool = said_of = node.tool
        else:
            tool, said_of = f"cap:{node.name}", place.top or node.id
        return ShownCall(
            node_id=f"{place.prefix}{node.id}",
            tool=tool,
            verdict=self._verdicts.get(said_of, "allow"),
            within=place.capability.name if place.capability else None,
            line=node.line,
            column=node.column,
            how_often="any number of times" if repeats else "once",
            arguments=self.arguments.of_fields(fields),
        )


def _verdicts(analysis: ExecutionAnalyzed) -> Mapping[str, Verdict]:
    """The strictest verdict on each tool, and on what each node of the program reaches."""
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
    """Long literals by their digests, by which grants name them."""
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
