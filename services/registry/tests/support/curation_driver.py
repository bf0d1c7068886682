"""Calls the handlers of curation as the bus would, with programs that are read for real."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal
from uuid import UUID, uuid4

from pml_analysis.analysis import Analysis, analyze
from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.curation import (
    Curate,
    Curation,
    LiftCapability,
    LiftedCapability,
    NameChoice,
    SaveCapability,
    SavedCapability,
)
from pml_common.contracts.decision import Decision, Policy
from pml_common.contracts.display_names import parse_display_name
from pml_common.contracts.gateway import WorkflowOutcome
from pml_common.contracts.scope import Scope
from pml_registry.adapters.code_hashes import CodeHashes
from pml_registry.adapters.postgres_curation import PostgresCurationStore
from pml_registry.application.curation import Curator
from pml_registry.domain.curation import Unnamed
from pml_registry.domain.reservations import Refusal, Wish
from pml_registry.entrypoints.bus.on_curate import on_curate
from pml_registry.entrypoints.bus.on_execution_analyzed import on_execution_analyzed
from pml_registry.entrypoints.bus.on_lift_capability import on_lift_capability
from pml_registry.entrypoints.bus.on_save_capability import Saving, on_save_capability
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import AUTHOR, SCOPE, learning_update, tool
from services.registry.tests.support.store_driver import StoreDriver, published
from services.registry.tests.support.stores import Stores, stores_on, version_keys

TOOLS = [tool(id_) for id_ in ("fs:read", "fs:write", "git:diff", "json:parse", "crm:lookup")]


def program(
    code: str, intent: str = "", *, scope: Scope = SCOPE, principal: str = AUTHOR
) -> ExecutionAnalyzed:
    """Analyse a program, in a workflow of its own."""
    found = analyze(code, tools=TOOLS, policy=Policy())
    assert isinstance(found, Analysis), found
    workflow_id = uuid4()
    return ExecutionAnalyzed(
        scope=scope,
        event_id=ids.effect_id(workflow_id, "execution-analyzed"),
        workflow_id=workflow_id,
        principal=principal,
        capability=CapabilityIdentity(
            capability_id=ids.capability_id(scope, found.code_hash), code_hash=found.code_hash
        ),
        intent=intent or None,
        code=code,
        instrumented=found.instrumented,
        structure=found.structure,
        decision=Decision(verdict="allow"),
        parameters_schema=found.parameters_schema,
    )


class FakeModel:
    """Proposes names by intent."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.asked = 0

    async def propose(self, capabilities: Sequence[Unnamed]) -> Mapping[UUID, str]:
        self.asked += 1
        return {
            each.capability_id: self.names[each.description]
            for each in capabilities
            if each.description in self.names
        }


class CurationDriver:
    """Handles events and queries."""

    def __init__(self, stores: Stores, embedder: Embedder) -> None:
        self.hashing = CodeHashes()
        stores = stores_on(stores.pools, version_keys(hashing=self.hashing))
        self.base = StoreDriver(stores, embedder)
        self._stores, self._embedder = stores, embedder
        self.store = PostgresCurationStore(stores.pools)
        self.curator = Curator(
            self.store, self.base.naming, self.hashing, None, lambda: self.base.now
        )

    def ask(self, model: FakeModel) -> None:
        """Name with a model from now on."""
        self.curator = replace(self.curator, model=model)

    async def analysed(self, *analyses: ExecutionAnalyzed) -> None:
        """Handle a batch. Raises the first error of one of them."""
        handled = await on_execution_analyzed(
            analyses, self._stores.capabilities, self._embedder, self.hashing
        )
        published(handled, analyses)

    async def ran(
        self, code: str, intent: str = "", *, runs: int = 1, principal: str = AUTHOR
    ) -> ExecutionAnalyzed:
        """Run a program successfully."""
        analysis = program(code, intent, principal=principal)
        await self.analysed(analysis)
        await self.learned(analysis, runs)
        return analysis

    async def learned(self, analysis: ExecutionAnalyzed, runs: int = 1) -> None:
        code_hash, scope = analysis.capability.code_hash, analysis.scope
        intent = analysis.intent
        update = learning_update(runs, code_hash=code_hash, scope=scope, intent=intent)
        await self.base.learned(update)

    async def named(self, name: str, analysis: ExecutionAnalyzed) -> None:
        """Run a program successfully under a name."""
        await self.reserve(name, analysis)
        scope, workflow_id = analysis.scope, analysis.workflow_id
        assert await self.base.naming.settle(scope, workflow_id, succeeded=True) == name

    async def reserve(
        self, name: str, analysis: ExecutionAnalyzed, *, update: bool = False
    ) -> None:
        """Reserve a name for a program."""
        await self.analysed(analysis)
        wish = Wish(
            name=parse_display_name(name),
            behaviour=analysis.capability.capability_id,
            workflow_id=analysis.workflow_id,
            principal=analysis.principal,
            update=update,
            intent=analysis.intent or "",
        )
        decided = await self.base.naming.reserve(analysis.scope, wish)
        assert not isinstance(decided, Refusal), decided

    def ended(self, analysis: ExecutionAnalyzed, state: Literal["succeeded", "failed"]) -> UUID:
        """Have the gateway say how the program's workflow ended."""
        self.base.outcomes[analysis.workflow_id] = WorkflowOutcome(
            state=state, capability_id=analysis.capability.capability_id
        )
        return analysis.workflow_id

    async def curate(
        self,
        mode: Literal["suggest", "auto", "apply"] = "suggest",
        *,
        apply: Mapping[UUID, str] | None = None,
        principal: str = AUTHOR,
        **options: object,
    ) -> Curation:
        names = [NameChoice(capability_id=id_, name=name) for id_, name in (apply or {}).items()]
        query = Curate.model_validate(
            {"scope": SCOPE, "principal": principal, "mode": mode, "names": names, **options}
        )
        return await on_curate(query, self.curator, self.base.resolution)

    async def lift(self, reference: str, principal: str = AUTHOR) -> LiftedCapability:
        query = LiftCapability(scope=SCOPE, principal=principal, reference=reference)
        return await on_lift_capability(query, self.curator, self.base.resolution)

    async def save(self, name: str, **options: object) -> SavedCapability:
        asked = {"scope": SCOPE, "principal": AUTHOR, "name": name, **options}
        saving = Saving(self.curator, self.base.resolution, self._embedder, self.hashing)
        return await on_save_capability(SaveCapability.model_validate(asked), saving)
