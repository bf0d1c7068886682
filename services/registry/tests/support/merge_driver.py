"""Merges capabilities as the gateway would, with programs that are read for real."""

from dataclasses import dataclass
from uuid import UUID, uuid4

from pml_analysis.analysis import Analysis, Rejection, analyze
from pml_analysis.capability_reading import read_capability
from pml_analysis.decision.capabilities import Library
from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.decision import Policy
from pml_common.contracts.dns import ChangedRecord
from pml_common.contracts.merging import MergeCapabilities, MergePlan, PlanMerge
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_registry.entrypoints.bus.on_merge import Merging, on_merge_capabilities, on_plan_merge
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import AUTHOR, SCOPE, listed
from services.registry.tests.support.curation_driver import CurationDriver
from services.registry.tests.support.stores import Stores

TEXT: JsonObject = {"type": "string"}
TOOLS = (
    ToolDefinition(
        server="fs",
        name="read",
        input_schema={"type": "object", "properties": {"path": TEXT}, "required": ["path"]},
        output_schema={"type": "object", "properties": {"content": TEXT}, "required": ["content"]},
    ),
    ToolDefinition(
        server="fs",
        name="count",
        input_schema={"type": "object", "properties": {"text": TEXT}, "required": ["text"]},
        output_schema={"type": "number"},
    ),
    ToolDefinition(server="fs", name="list"),
)


@dataclass
class MergeDriver:
    """Handles queries."""

    curation: CurationDriver
    stores: Stores
    embedder: Embedder

    @property
    def merging(self) -> Merging:
        base = self.curation.base
        return Merging(base.service, self.stores.tools, self.embedder, self.curation.hashing)

    async def start(self) -> None:
        """List the tools."""
        await on_tools_listed(listed(*TOOLS), self.stores.tools, self.embedder)

    async def analysed(
        self, code: str, intent: str = "", *, scope: Scope = SCOPE, principal: str = AUTHOR
    ) -> ExecutionAnalyzed:
        """Analyse a program, with the capabilities that it names."""
        library, found = Library(), analyze(code, tools=TOOLS, policy=Policy())
        while isinstance(found, Rejection) and found.missing_capabilities:
            library = await self._library(found.missing_capabilities, scope, principal)
            found = analyze(code, tools=TOOLS, policy=Policy(), capabilities=library)
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
            decision=found.decision,
            capabilities=found.capabilities,
            injected=found.injected,
            parameters_schema=found.parameters_schema,
        )

    async def _library(self, names: tuple[str, ...], scope: Scope, principal: str) -> Library:
        answers = await self.curation.base.describe(*names, scope=scope, principal=principal)
        found = {each.reference: each.capability for each in answers}
        assert all(found.values()), found
        return Library(
            {name: read_capability(about) for name, about in found.items() if about}, {}, {}
        )

    async def ran(self, name: str, code: str, intent: str = "", scope: Scope = SCOPE) -> None:
        """Run a program successfully under a name."""
        analysis = await self.analysed(code, intent, scope=scope)
        await self.curation.named(name, analysis)
        await self.curation.learned(analysis)

    async def plan(
        self,
        *sources: str,
        name: str = "notes:count",
        code: str | None = None,
        request_id: UUID | None = None,
        principal: str = AUTHOR,
    ) -> MergePlan:
        query = PlanMerge(
            scope=SCOPE,
            principal=principal,
            request_id=request_id or uuid4(),
            name=name,
            sources=sources,
            code=code,
        )
        return await on_plan_merge(query, self.merging)

    async def merge(
        self,
        *sources: str,
        name: str = "notes:count",
        code: str | None = None,
        request_id: UUID | None = None,
        principal: str = AUTHOR,
    ) -> ChangedRecord:
        """Merge as the gateway does: the plan, its analysis, and the registration."""
        request_id = request_id or uuid4()
        plan = await self.plan(
            *sources, name=name, code=code, request_id=request_id, principal=principal
        )
        if plan.made is not None:
            return plan.made
        query = MergeCapabilities(
            scope=SCOPE,
            principal=principal,
            request_id=request_id,
            name=name,
            sources=tuple(source.reference for source in plan.sources),
            analysis=await self.analysed(plan.code, plan.intent, principal=principal),
        )
        return await on_merge_capabilities(query, self.merging)
