"""Messages about the relations that several runs show."""

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import (
    COHORTS,
    EdgesObserved,
    ObservedCall,
    ObservedEdge,
    ObservedRelation,
)
from pml_common.contracts.scope import Scope
from pml_learner.domain.edges import Relation, relations_of


def cohort_of(scope: Scope, principal: str) -> int:
    """Return the cohort of a principal: it tells influences apart, not people."""
    text = f"{scope.org}.{scope.project}/{principal}"
    return sha256(text.encode("utf-8", "surrogatepass")).digest()[0] % COHORTS


def edge_messages(runs: Iterable[RunFinished]) -> Iterable[tuple[UUID, EdgesObserved]]:
    """Yield a message for each capability and cohort of principals whose runs show any relation,
    with the id of the last of these runs."""
    shown: dict[tuple[Scope, UUID, int], list[tuple[RunFinished, frozenset[Relation]]]] = {}
    for run in runs:
        if found := relations_of(run):
            cohort = cohort_of(run.scope, run.principal)
            key = run.scope, run.capability.capability_id, cohort
            shown.setdefault(key, []).append((run, found))
    for (_, _, cohort), of_runs in shown.items():
        last, _ = of_runs[-1]
        counts = Counter(relation for _, found in of_runs for relation in found)
        yield last.event_id, _message(last, counts, len(of_runs), cohort)


def _message(last: RunFinished, counts: Counter[Relation], runs: int, cohort: int) -> EdgesObserved:
    edges: list[ObservedEdge] = []
    calls: list[ObservedCall] = []
    relations: list[ObservedRelation] = []
    for relation in _in_order(counts):
        from_, to, count = relation.from_, relation.to, counts[relation]
        if isinstance(from_, str) and isinstance(to, str):
            edges.append(ObservedEdge(from_tool=from_, to_tool=to, count=count))
        elif isinstance(from_, UUID) and isinstance(to, UUID) and relation.type == "contains":
            calls.append(ObservedCall(from_capability_id=from_, to_capability_id=to, count=count))
        else:
            relations.append(
                ObservedRelation(from_=str(from_), to=str(to), type=relation.type, count=count)
            )
    return EdgesObserved(
        scope=last.scope,
        event_id=ids.effect_id(last.event_id, "edges-observed"),
        capability_id=last.capability.capability_id,
        workflow_id=last.workflow_id,
        edges=tuple(edges),
        calls=tuple(calls),
        relations=tuple(relations),
        runs=runs,
        cohort=cohort,
    )


def _in_order(relations: Iterable[Relation]) -> Sequence[Relation]:
    return sorted(relations, key=lambda each: (each.type, str(each.from_), str(each.to)))
