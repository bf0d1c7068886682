"""Uses: which tools and capabilities served the intent of a run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.scope import Scope
from pml_common.contracts.uses import MAX_INTENT, MAX_SERVED, ObservedUse, UsesObserved

_MAX_TOOL_ID: Final = 256


def use_of(run: RunFinished) -> ObservedUse | None:
    """Return the use that a run shows; None for a dry run, one that failed or had no result, one
    without an intent, and one in which nothing served."""
    intent = (run.intent or "").replace("\x00", " ").strip()[:MAX_INTENT]
    if run.dry_run or run.void or not run.success or not intent:
        return None
    tools = [
        task.tool
        for task in run.task_results
        if task.success and not task.mocked and len(task.tool) <= _MAX_TOOL_ID
    ]
    by_name = [run.capability.capability_id] if run.called_as is not None else []
    called = [call.capability.capability_id for call in run.nested if call.success]
    if not tools and not by_name and not called:
        return None
    return ObservedUse(
        workflow_id=run.workflow_id,
        principal=run.principal,
        intent=intent,
        discovery_id=run.discovery_id,
        tools=tuple(dict.fromkeys(tools))[:MAX_SERVED],
        capabilities=tuple(dict.fromkeys([*by_name, *called]))[:MAX_SERVED],
        observed_at=run.started_at,
    )


def uses_observed(runs: Iterable[RunFinished]) -> Mapping[UUID, UsesObserved]:
    """Return one message for each scope with uses, by the id of the last run that shows one."""
    shown: dict[Scope, list[tuple[RunFinished, ObservedUse]]] = {}
    for run in runs:
        if use := use_of(run):
            shown.setdefault(run.scope, []).append((run, use))
    return dict(map(_message, shown.values()))


def _message(of_scope: Sequence[tuple[RunFinished, ObservedUse]]) -> tuple[UUID, UsesObserved]:
    last = of_scope[-1][0]
    return last.event_id, UsesObserved(
        scope=last.scope,
        event_id=ids.effect_id(last.event_id, "uses-observed"),
        workflow_id=last.workflow_id,
        uses=tuple(use for _, use in of_scope),
    )
