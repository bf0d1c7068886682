"""Evidence in memory; tested by the same suite as Postgres."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from typing_extensions import override

from pml_common.contracts import catalog
from pml_common.contracts.scope import Scope
from pml_common.storage.memory import MemoryInbox
from pml_registry.domain.evidence import MOST_USES, opinion_weight, surplus
from pml_registry.ports.evidence import (
    EvidenceStore,
    IntentVector,
    Judge,
    NewUse,
    Opinions,
    Stand,
    StoredUse,
)

_CONSUMER = catalog.REGISTRY_ON_USES_OBSERVED.durable


@dataclass
class _Rows:
    stand: Stand = field(default_factory=Stand)
    uses: dict[UUID, tuple[int, NewUse]] = field(default_factory=dict[UUID, tuple[int, NewUse]])
    opinions: dict[UUID, Opinions] = field(default_factory=dict[UUID, Opinions])
    deleted: set[UUID] = field(default_factory=set[UUID])

    def reset(self) -> None:
        self.stand = replace(self.stand, reset=self.stand.reset + 1)

    def newest_first(self) -> Sequence[tuple[int, NewUse]]:
        return sorted(self.uses.values(), key=lambda each: -each[0])


class MemoryEvidenceStore(EvidenceStore):
    """Evidence in dictionaries, by scope."""

    def __init__(self, inbox: MemoryInbox, most_uses: int = MOST_USES) -> None:
        self._inbox = inbox
        self._most_uses = most_uses
        self._scopes: dict[Scope, _Rows] = {}

    def _of(self, scope: Scope) -> _Rows:
        return self._scopes.setdefault(scope, _Rows())

    @override
    async def learn(
        self, scope: Scope, message_id: UUID, uses: Sequence[NewUse], judge: Judge
    ) -> None:
        async with self._inbox.once(message_id, _CONSUMER) as entry:
            if entry.replayed is None:
                entry.stage(lambda: self._store(self._of(scope), uses, judge))

    def _store(self, rows: _Rows, uses: Sequence[NewUse], judge: Judge) -> None:
        before = rows.stand
        for sequence, use in enumerate(uses, before.sequence + 1):
            if use.workflow_id not in rows.deleted:
                rows.uses[use.use_id] = (sequence, use)
        dropped = set(
            surplus([(n.use.principal, at) for at, n in rows.newest_first()], self._most_uses)
        )
        rows.uses = {key: row for key, row in rows.uses.items() if row[0] not in dropped}
        trials = [use.trial for _, use in rows.newest_first() if use.trial is not None]
        rows.stand = Stand(
            judge(trials, before.standing),
            before.sequence + len(uses),
            before.reset + bool(dropped),
        )

    @override
    async def stand(self, scope: Scope) -> Stand:
        return self._of(scope).stand

    @override
    async def uses(self, scope: Scope, after: int) -> Sequence[StoredUse]:
        rows = self._of(scope)
        return [
            _stored(sequence, use, rows.opinions.get(use.workflow_id))
            for sequence, use in reversed(rows.newest_first())
            if sequence > after
        ]

    @override
    async def opine(self, scope: Scope, opinions: Opinions) -> None:
        rows, workflow_id = self._of(scope), opinions.workflow_id
        known = rows.opinions.get(workflow_id)
        if workflow_id not in rows.deleted and (
            known is None or known.judged_at < opinions.judged_at
        ):
            rows.opinions[workflow_id] = opinions
        newest = sorted(rows.opinions.values(), key=lambda each: -each.judged_at)
        rows.opinions = {each.workflow_id: each for each in newest[: self._most_uses]}
        rows.reset()

    @override
    async def erase(self, scope: Scope, workflow_id: UUID) -> None:
        rows = self._of(scope)
        rows.deleted.add(workflow_id)
        rows.uses = {
            key: row for key, row in rows.uses.items() if row[1].workflow_id != workflow_id
        }
        rows.opinions.pop(workflow_id, None)
        rows.reset()

    @override
    async def outdated(self, model: str, limit: int) -> Sequence[tuple[Scope, StoredUse]]:
        found = [
            (scope, _stored(sequence, use, None))
            for scope, rows in self._scopes.items()
            for sequence, use in rows.uses.values()
            if use.model != model
        ]
        return found[:limit]

    @override
    async def embed(self, scope: Scope, use: StoredUse, model: str, vector: IntentVector) -> None:
        rows = self._of(scope)
        known = rows.uses.get(use.use_id)
        if known is not None and known[0] == use.sequence:
            embedded = replace(known[1], model=model, vector=vector)
            rows.uses[use.use_id] = (use.sequence, embedded)
        rows.reset()


def _stored(sequence: int, new: NewUse, opinions: Opinions | None) -> StoredUse:
    weight = 1.0 if opinions is None else opinion_weight(opinions.useful, opinions.not_useful)
    use = replace(new.use, weight=weight, measured=new.trial is not None)
    return StoredUse(new.use_id, sequence, use, new.model, new.vector)
