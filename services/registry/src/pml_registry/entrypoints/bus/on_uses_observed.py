"""Handles `uses-observed`, `use-judged` and `workflow-data-deleted`."""

from collections.abc import Sequence

from pml_common.contracts.base import Message
from pml_common.contracts.gateway import WorkflowDataDeleted
from pml_common.contracts.uses import UseJudged, UsesObserved
from pml_registry.application.learning_uses import UseLearning
from pml_registry.ports.evidence import EvidenceStore, Opinions


async def on_uses_observed(observed: UsesObserved, learning: UseLearning) -> Sequence[Message]:
    """Store what served intents, and judge whether rankings use it; nothing follows. A redelivery
    changes nothing."""
    await learning.learn(observed)
    return ()


async def on_use_judged(judged: UseJudged, evidence: EvidenceStore) -> Sequence[Message]:
    """Weigh the workflow's use by the opinions of it, the newest in any order of delivery; nothing
    follows."""
    opinions = Opinions(judged.workflow_id, judged.useful, judged.not_useful, judged.judged_at)
    await evidence.opine(judged.scope, opinions)
    return ()


async def on_workflow_data_deleted(
    deleted: WorkflowDataDeleted, evidence: EvidenceStore
) -> Sequence[Message]:
    """Remove the workflow's intent, and what served it, also if it comes later; nothing follows."""
    await evidence.erase(deleted.scope, deleted.workflow_id)
    return ()
