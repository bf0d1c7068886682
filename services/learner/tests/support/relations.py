"""Relations that runs of nested capabilities show, with their counts."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.executor import NestedRun, RunFinished
from pml_common.contracts.learner import EdgesObserved
from pml_learner.domain.batch import messages_of
from pml_learner.domain.lesson import Experience, learn
from pml_learner.domain.temporal_difference import TdRule
from services.learner.tests.support.builders import (
    CODE_HASH,
    SCOPE,
    finished_run,
    nested_run,
    tool_call,
)

B, C = "bb" * 32, "cc" * 32
LETTERS = {ids.capability_id(SCOPE, code): code[0].upper() for code in (CODE_HASH, B, C)}
"""Capabilities by the first letter of their code hash: the run's own is A."""


def call_of(code: str, start: float, end: float, parent: UUID) -> NestedRun:
    """A call of a capability between two times."""
    call = nested_run(parent, code, f"n{start}", started_at=start)
    return call.model_copy(update={"duration_ms": end - start})


def edges_observed(*runs: RunFinished) -> Sequence[EdgesObserved]:
    """The messages about runs that are learned together."""
    lessons = {run.event_id: [learn(Experience(), run, TdRule())] for run in runs}
    found: list[EdgesObserved] = []
    for cause, messages in messages_of(lessons).items():
        for each in messages:
            if isinstance(each, EdgesObserved):
                assert each.event_id == ids.effect_id(cause, "edges-observed")
                found.append(each)
    return found


def counts_of(messages: Sequence[EdgesObserved]) -> Counter[tuple[str, str, str]]:
    """The counts of all relations of messages, each message once, by ends and type."""
    counts = Counter[tuple[str, str, str]]()
    for each in {message.event_id: message for message in messages}.values():
        for edge in each.edges:
            counts[edge.from_tool, edge.to_tool, edge.type] += edge.count
        for call in each.calls:
            ends = LETTERS[call.from_capability_id], LETTERS[call.to_capability_id]
            counts[*ends, "contains"] += call.count
        for relation in each.relations:
            ends = tuple(
                end if ":" in end else LETTERS[UUID(end)] for end in (relation.from_, relation.to)
            )
            counts[ends[0], ends[1], relation.type] += relation.count
    return counts


def nesting(*, times: int = 1, principal: str = "agent-7") -> RunFinished:
    """A run that calls B some times, one after the other, which calls C and a tool each time."""
    run = finished_run()
    of_b = [call_of(B, 10 * at, 10 * at + 5, run.trace_id) for at in range(times)]
    of_c = [call_of(C, 10 * at + 1, 10 * at + 2, each.trace_id) for at, each in enumerate(of_b)]
    reads = [
        tool_call("fs:read", 10 * at + 3, 10 * at + 4, parent=each.trace_id)
        for at, each in enumerate(of_b)
    ]
    return run.model_copy(
        update={"nested": (*of_b, *of_c), "task_results": reads, "principal": principal}
    )
