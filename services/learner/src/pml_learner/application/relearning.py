"""Learning again from stored traces: rebuilds, and bases for traces that are deleted.

One step reads a bounded number of traces under the lock of the capability's row; live learning goes
on between steps.
"""

import logging
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from pml_common.bus.port import Bus
from pml_common.contracts import ids
from pml_common.contracts.learner import LearningUpdated, RebuildLearning, RebuildProgress
from pml_common.contracts.scope import Scope
from pml_common.errors import Retryable
from pml_learner.application.learning_measures import count_rebuilt
from pml_learner.domain.lesson import ScopedCapability
from pml_learner.domain.relearning import Learned, Step, folded_away, rebuilt
from pml_learner.domain.retention import Retention
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.ports import Relearning, TraceStore

log = logging.getLogger(__name__)

STEP: Final = 500
"""Traces read in one step."""
_STALE_AT_ONCE: Final = 20
_STEPS_AT_ONCE: Final = 200
_STEPS_OF_A_QUERY: Final = 10
_DELETE_AT_ONCE: Final = 1000


async def rebuild_step(
    traces: TraceStore, capability: ScopedCapability, rule: TdRule, limit: int = STEP
) -> tuple[Step, int] | None:
    """Go on with the rebuild of a capability, from its base at the first step; return the step and
    the number of traces read, or None of an unknown capability. Raises StorageUnavailable."""
    async with traces.relearning(capability) as row:
        if row is None:
            return None
        learned = row.learned
        _, after = learned.start(rule)
        page = await row.traces(after, learned.experience.position, limit)
        step = rebuilt(learned, page, rule, limit)
        if step.learned != learned:
            await row.put(step.learned)
    if step.is_done:
        count_rebuilt()
    return step, len(page)


async def publish_rebuilt(
    bus: Bus, traces: TraceStore, capability: ScopedCapability, rule: TdRule
) -> None:
    """Publish what a capability learned by a rebuild; again it has the same id. Raises
    StorageUnavailable and BusUnavailable."""
    async with traces.relearning(capability) as row:
        if row is None or not _is_to_be_published(row.learned, rule):
            return
        revision, updated = row.learned.experience.revision, await _updated(capability, row)
    if updated is not None:
        await bus.publish(updated)
    async with traces.relearning(capability) as row:
        if row is not None and row.learned.experience.revision == revision:
            await row.put(replace(row.learned, is_stale=False))


async def relearn_stale(bus: Bus, traces: TraceStore, rule: TdRule) -> None:
    """Rebuild and publish what was learned by older rules or lacks lessons, a bounded part at once.
    A capability that fails is logged, and holds up no other. Raises StorageUnavailable and
    BusUnavailable."""
    steps = 0
    for capability in await traces.stale(rule.version, _STALE_AT_ONCE):
        try:
            steps += await _relearn(bus, traces, capability, rule, _STEPS_AT_ONCE - steps)
        except Retryable:
            raise
        except Exception:
            log.exception("capability %s is not learned again", capability[1])


async def _relearn(
    bus: Bus, traces: TraceStore, capability: ScopedCapability, rule: TdRule, most: int
) -> int:
    """Do at most so many steps of a rebuild, publish it if it is done, and return their number."""
    for step in range(1, most + 1):
        stepped = await rebuild_step(traces, capability, rule)
        if stepped is None or stepped[0].is_done:
            await publish_rebuilt(bus, traces, capability, rule)
            return step
    return max(0, most)


async def rebuild_some(
    bus: Bus, traces: TraceStore, query: RebuildLearning, rule: TdRule, limit: int = STEP
) -> RebuildProgress | None:
    """Rebuild a bounded part of a scope; None where nothing is known of the one capability. Raises
    StorageUnavailable and BusUnavailable."""
    scope, wanted = query.scope, query.capability_id
    found, total = await traces.capabilities(scope, query.after, _STEPS_OF_A_QUERY)
    if wanted is not None:
        found, total = [wanted], 1
    done, changed, read, missing, after = 0, 0, 0, 0, query.after
    for _ in range(_STEPS_OF_A_QUERY):
        if done == len(found):
            break
        capability = scope, found[done]
        stepped = await rebuild_step(traces, capability, rule, limit)
        if stepped is None:
            return None
        step, count = stepped
        read += count
        if step.is_done:
            await publish_rebuilt(bus, traces, capability, rule)
            changed, missing, after = (
                changed + int(step.changed),
                missing + step.missing,
                found[done],
            )
            done += 1
    return RebuildProgress(
        rebuilt=done,
        changed=changed,
        traces=read,
        missing=missing,
        left=total - done,
        after=after,
    )


async def fold_away(
    traces: TraceStore, capability: ScopedCapability, up_to: int, rule: TdRule, limit: int = STEP
) -> None:
    """Move the base of a capability to a position: the traces up to there may be deleted, and what
    they taught stays. A repetition changes nothing. Raises StorageUnavailable."""
    is_done = False
    while not is_done:
        async with traces.relearning(capability) as row:
            if row is None or row.learned.base_position >= up_to:
                return
            page = await row.traces(row.learned.base_position, up_to, limit)
            is_done = len(page) < limit
            target = up_to if is_done else page[-1].position
            await row.put(folded_away(row.learned, page, rule, target))


async def delete_workflow(
    traces: TraceStore, scope: Scope, workflow_id: UUID, rule: TdRule
) -> None:
    """Delete the traces of a workflow and the comments on it, and keep none that come later. What
    was learned stays; a repetition changes nothing. Raises StorageUnavailable."""
    await traces.note_deletion(scope, workflow_id)
    await _remove(traces, scope, [workflow_id], rule)


async def forget_principal(
    traces: TraceStore, scope: Scope, principal: str, before: datetime, rule: TdRule
) -> None:
    """Delete a principal's opinions, and the traces from before this time; what was learned from
    them stays. A repetition changes nothing. Raises StorageUnavailable."""
    await traces.drop_opinions(scope, principal, before)
    while some := await traces.of_principal(scope, principal, before, _DELETE_AT_ONCE):
        await _remove(traces, scope, some, rule)


async def delete_old_traces(
    traces: TraceStore, retention: Retention, now: datetime, rule: TdRule
) -> None:
    """Delete the traces that are older than their scope keeps them: whole months first, then the
    rest in steps. What was learned stays. Raises StorageUnavailable."""
    for capability, position in (await traces.unfolded_of_months(retention, now)).items():
        await fold_away(traces, capability, position, rule)
    await traces.drop_months(retention, now)
    for scope in await traces.scopes():
        while await delete_some(traces, scope, retention.since(scope, now), _DELETE_AT_ONCE, rule):
            pass


async def delete_some(
    traces: TraceStore, scope: Scope, before: datetime, limit: int, rule: TdRule
) -> int:
    """Delete the traces of at most `limit` old workflows of a scope, those with a trace from before
    this time, and return their number; what was learned stays. Raises StorageUnavailable."""
    old = await traces.old(scope, before, limit)
    await _remove(traces, scope, old, rule)
    return len(old)


async def _remove(
    traces: TraceStore, scope: Scope, workflows: Collection[UUID], rule: TdRule
) -> None:
    for capability, position in (await traces.unfolded(scope, workflows)).items():
        await fold_away(traces, capability, position, rule)
    await traces.remove(scope, workflows)


def _is_to_be_published(learned: Learned, rule: TdRule) -> bool:
    return learned.is_stale and learned.experience.is_current(rule)


async def _updated(capability: ScopedCapability, row: Relearning) -> LearningUpdated | None:
    known = row.learned.experience
    page = await row.traces(known.position - 1, known.position, 1)
    if not page:
        return None
    scope, capability_id = capability
    cause = ids.scoped_id(scope, "learning", str(capability_id))
    last = page[0].trace
    return LearningUpdated(
        scope=scope,
        event_id=ids.effect_id(cause, f"rebuilt/{known.revision}"),
        capability_id=capability_id,
        workflow_id=last.workflow_id,
        trace_id=last.trace_id,
        revision=known.revision,
        priority=last.priority,
        usage=known.usage,
        learning=known.learning,
    )
