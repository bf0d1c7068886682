"""A run's journal as a tree: the program's own entries, and those of each call of a capability."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from uuid import UUID

from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import NestedRun, RunWorkflow
from pml_common.contracts.trace import (
    BranchDecision,
    CapabilityEnd,
    CapabilityStart,
    DecisionTaken,
    ToolEnd,
    ToolStart,
    TraceEvent,
)
from pml_executor.domain.executed_path import executed_path

_CALLS = (ToolStart, ToolEnd, CapabilityStart, CapabilityEnd)
"""Entries with a trace of their own, which belong to that of their parent."""


def by_trace(entries: Sequence[TraceEvent]) -> dict[UUID | None, list[TraceEvent]]:
    """Group the entries by the trace of the program or the capability that they belong to, in
    order; the program's own start and end under None."""
    found: dict[UUID | None, list[TraceEvent]] = {}
    for entry in entries:
        owner = entry.parent_trace_id if isinstance(entry, _CALLS) else entry.trace_id
        found.setdefault(owner, []).append(entry)
    return found


def nested_runs(command: RunWorkflow, entries: Sequence[TraceEvent]) -> tuple[NestedRun, ...]:
    """Return the calls of capabilities, in order of their starts."""
    hashes = {one.capability_id: one.code_hash for one in command.injected}
    ends = {entry.trace_id: entry for entry in entries if isinstance(entry, CapabilityEnd)}
    inside = by_trace(entries)
    return tuple(
        _nested_run(
            entry,
            entry.parent_trace_id,
            CapabilityIdentity(
                capability_id=entry.capability_id, code_hash=hashes[entry.capability_id]
            ),
            ends.get(entry.trace_id) or _unended(entry, entries[-1].ts),
            inside,
        )
        for entry in entries
        if isinstance(entry, CapabilityStart) and entry.parent_trace_id is not None
    )


def decisions(entries: Sequence[TraceEvent]) -> tuple[BranchDecision, ...]:
    """Return the outcomes of decisions, in order; equal ones in a row are merged."""
    taken = [entry for entry in entries if isinstance(entry, DecisionTaken)]
    return tuple(
        BranchDecision(
            node_id=node_id, outcome=outcome, times=sum(max(1, each.counted) for each in equal)
        )
        for (node_id, outcome), equal in groupby(
            taken, lambda each: (each.node_id or "", each.outcome)
        )
    )


def _nested_run(
    start: CapabilityStart,
    parent: UUID,
    capability: CapabilityIdentity,
    end: CapabilityEnd,
    inside: Mapping[UUID | None, Sequence[TraceEvent]],
) -> NestedRun:
    prefix = f"{start.node_id}/"
    own = [
        entry.model_copy(update={"node_id": (entry.node_id or "").removeprefix(prefix)})
        for entry in inside.get(start.trace_id, ())
    ]
    return NestedRun(
        trace_id=start.trace_id,
        parent_trace_id=parent,
        node_id=start.node_id or "",
        occurrence=start.occurrence,
        capability=capability,
        name=start.name or "",
        success=end.success,
        result=end.result,
        error=end.error,
        executed_path=executed_path(own),
        decisions=decisions(own),
        started_at=start.ts,
        duration_ms=end.duration_ms,
    )


def _unended(start: CapabilityStart, run_end: float) -> CapabilityEnd:
    """Build the end of a call that had not ended when the run did."""
    return CapabilityEnd(
        trace_id=start.trace_id,
        ts=run_end,
        capability_id=start.capability_id,
        success=False,
        duration_ms=max(0.0, run_end - start.ts),
        error=WorkflowError(
            kind="outcome_unknown",
            message=f"the run ended before capability {start.name} did",
            node_id=start.node_id,
        ),
    )
