"""Relations that one run shows: first by hierarchy, from a caller to what it called, then by time,
between what one caller called."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from pml_common.contracts.executor import RunFinished
from pml_common.intervals import Interval, consecutive

Node = str | UUID
"""A tool by its id, a capability by its."""


@dataclass(frozen=True)
class Relation:
    """A directed relation between two different nodes."""

    from_: Node
    to: Node
    type: Literal["contains", "sequence"]


@dataclass(frozen=True)
class _Call:
    """A call of a tool or a capability, with its time."""

    called: Node
    interval: Interval


def relations_of(run: RunFinished) -> frozenset[Relation]:
    """Return the relations that a run shows, each once however often it does. Calls that overlap
    are parallel and in no sequence; nothing is related to itself; calls of a caller that the run
    does not name are left out."""
    capabilities = {run.trace_id: run.capability.capability_id}
    capabilities |= {call.trace_id: call.capability.capability_id for call in run.nested}
    return frozenset(
        relation
        for caller, calls in _calls_by_caller(run).items()
        if caller in capabilities
        for relation in _related(capabilities[caller], calls)
        if relation.from_ != relation.to
    )


def _calls_by_caller(run: RunFinished) -> Mapping[UUID, Sequence[_Call]]:
    """Return the calls made by each program or capability, by the id of its trace."""
    found: dict[UUID, list[_Call]] = {}
    for task in run.task_results:
        call = _Call(task.tool, _interval(task.started_at, task.duration_ms))
        found.setdefault(task.parent_trace_id or run.trace_id, []).append(call)
    for nested in run.nested:
        interval = _interval(nested.started_at, nested.duration_ms)
        call = _Call(nested.capability.capability_id, interval)
        found.setdefault(nested.parent_trace_id, []).append(call)
    return found


def _related(caller: UUID, calls: Sequence[_Call]) -> Iterator[Relation]:
    for call in calls:
        yield Relation(caller, call.called, "contains")
    for one, other in consecutive([call.interval for call in calls]):
        yield Relation(calls[one].called, calls[other].called, "sequence")


def _interval(started_at: float, duration_ms: float) -> Interval:
    return started_at, started_at + max(0.0, duration_ms)
