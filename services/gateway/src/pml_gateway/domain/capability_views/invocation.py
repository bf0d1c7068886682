"""The invocations of a capability as a graph: a node for each run and each call that it made."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.learner import ExecutionTrace, TracePage
from pml_common.contracts.trace import TaskResult
from pml_common.intervals import Interval, consecutive, overlap
from pml_gateway.domain.capability_views.elements import (
    InvocationEdge,
    InvocationEdgeData,
    InvocationElements,
    InvocationNode,
    InvocationNodeData,
    InvocationsView,
)

_Call = TaskResult | ExecutionTrace
"""A call of a tool, or of a capability."""


@dataclass
class _Drawing:
    """Nodes and edges so far, within limits."""

    name: str
    limit: int
    edge_limit: int
    inside: Mapping[UUID, Sequence[ExecutionTrace]]
    numbers: Counter[str] = field(default_factory=Counter[str])
    nodes: list[InvocationNodeData] = field(default_factory=list[InvocationNodeData])
    edges: list[InvocationEdgeData] = field(default_factory=list[InvocationEdgeData])
    complete: bool = True

    def draw_run(self, run: ExecutionTrace, sequence: int) -> None:
        """Add a run of the capability with all calls in it."""
        if self._has_room():
            self._draw_calls(run, self._add(run, run, None, sequence, parallel=False))

    def _draw_calls(self, caller: ExecutionTrace, parent: str) -> None:
        made = [*caller.task_results, *self.inside.get(caller.trace_id, ())]
        calls = sorted(made, key=lambda call: (_interval(call), str(call.trace_id)))
        spans = [_interval(call) for call in calls]
        parallel = _parallel(spans)
        drawn: dict[int, str] = {}
        for at, call in enumerate(calls):
            if self._has_room():
                is_parallel = at in parallel
                drawn[at] = self._add(call, caller, parent, at + 1, parallel=is_parallel)
        for one, other in _first(consecutive(spans), self.edge_limit - len(self.edges) + 1):
            if len(self.edges) >= self.edge_limit:
                self.complete = False
            elif one in drawn and other in drawn:
                gap_ms = spans[other][0] - spans[one][1]
                self.edges.append(_edge(drawn[one], drawn[other], gap_ms))
        for at, call in enumerate(calls):
            if isinstance(call, ExecutionTrace) and at in drawn:
                self._draw_calls(call, drawn[at])

    def _has_room(self) -> bool:
        self.complete = self.complete and len(self.nodes) < self.limit
        return len(self.nodes) < self.limit

    def _add(
        self,
        call: _Call,
        caller: ExecutionTrace,
        parent: str | None,
        sequence: int,
        *,
        parallel: bool,
    ) -> str:
        called = self.name if parent is None else _name(call)
        self.numbers[called] += 1
        node_id = f"{called}_{self.numbers[called]}"
        started_at, ended_at = _interval(call)
        is_tool = isinstance(call, TaskResult)
        self.nodes.append(
            InvocationNodeData(
                id=node_id,
                parent=parent,
                label=node_id,
                kind="tool" if is_tool else "capability",
                tool=call.tool if is_tool else None,
                capability_id=None if is_tool else call.capability_id,
                trace_id=call.trace_id,
                workflow_id=caller.workflow_id,
                node_id=call.node_id,
                occurrence=call.occurrence if is_tool else None,
                sequence=sequence,
                started_at=started_at,
                ended_at=ended_at,
                duration_ms=ended_at - started_at,
                success=call.success,
                error_kind=None if call.error is None else call.error.kind,
                parallel=parallel,
                mocked=is_tool and call.mocked,
                dry_run=caller.dry_run,
            )
        )
        return node_id


def invocations_of(
    record: CapabilityRecord,
    page: TracePage,
    nested: Mapping[UUID, Sequence[ExecutionTrace]],
    limit: int,
    edge_limit: int,
    *,
    complete: bool = True,
) -> InvocationsView:
    """Draw a page of runs, with `limit` nodes and `edge_limit` edges at most, the earliest first.
    `nested`: the runs of the capabilities that they called, and those in turn, by the trace of the
    caller; `complete`: all of these were given."""
    drawing = _Drawing(record.name, limit, edge_limit, nested)
    runs = sorted(page.traces, key=lambda run: (run.executed_at, str(run.trace_id)))
    for sequence, run in enumerate(runs, 1):
        drawing.draw_run(run, sequence)
    return InvocationsView(
        capability_id=record.capability_id,
        name=record.name,
        elements=InvocationElements(
            nodes=tuple(
                InvocationNode(data=each, classes=_classes(each)) for each in drawing.nodes
            ),
            edges=tuple(InvocationEdge(data=each) for each in drawing.edges),
        ),
        runs=len(runs),
        total=page.total,
        next_cursor=page.next_cursor,
        complete=complete and drawing.complete,
    )


def callers_of(
    runs: Sequence[ExecutionTrace], others: Sequence[ExecutionTrace]
) -> Mapping[UUID, Sequence[ExecutionTrace]]:
    """Return those of the other traces that ran inside these runs, by the trace of their caller."""
    by_caller: dict[UUID, list[ExecutionTrace]] = {}
    for each in {each.trace_id: each for each in others}.values():
        if each.parent_trace_id is not None:
            by_caller.setdefault(each.parent_trace_id, []).append(each)
    inside: dict[UUID, list[ExecutionTrace]] = {}
    waiting = [run.trace_id for run in runs]
    while waiting:
        caller = waiting.pop()
        if caller in by_caller and caller not in inside:
            inside[caller] = by_caller[caller]
            waiting += [each.trace_id for each in by_caller[caller]]
    return inside


def _interval(call: _Call) -> Interval:
    started_at = call.started_at if isinstance(call, TaskResult) else call.executed_at
    return started_at, started_at + max(0.0, call.duration_ms)


def _name(call: _Call) -> str:
    if isinstance(call, TaskResult):
        return call.tool
    return call.name or str(call.capability_id)


def _parallel(spans: Sequence[Interval]) -> set[int]:
    """Return the places of those that overlap another; `spans` are in order."""
    found: set[int] = set()
    last = 0
    for at in range(1, len(spans)):
        if overlap(spans[last], spans[at]):
            found |= {last, at}
        if spans[at][1] >= spans[last][1]:
            last = at
    return found


def _first(pairs: Iterator[tuple[int, int]], most: int) -> Iterator[tuple[int, int]]:
    for _, pair in zip(range(most), pairs, strict=False):
        yield pair


def _edge(source: str, target: str, gap_ms: float) -> InvocationEdgeData:
    return InvocationEdgeData(
        id=f"{source}>{target}", source=source, target=target, gap_ms=max(0.0, gap_ms)
    )


def _classes(node: InvocationNodeData) -> str:
    marks = {"run": node.parent is None, "parallel": node.parallel, "mocked": node.mocked}
    end = "success" if node.success else "failure"
    return " ".join([node.kind, end, *(name for name, holds in marks.items() if holds)])
