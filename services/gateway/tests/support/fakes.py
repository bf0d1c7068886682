"""Fakes of the other four services, scripted by the program's text."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from libs.pml_common.tests.support.builders import after
from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import Bus
from pml_common.bus.run_journal import OWNER
from pml_common.contracts import catalog, ids
from pml_common.contracts.acceptance import WorkflowAccepted
from pml_common.contracts.analyzer import (
    AnalysisRejected,
    AnalyzeProgram,
    ExecutionAnalyzed,
    ProgramAnalysis,
)
from pml_common.contracts.base import Message
from pml_common.contracts.caching import CachePolicy
from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord
from pml_common.contracts.decision import Verdict
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_common.contracts.gateway import CallTool, ExecutionRequested, ToolOutcome
from pml_common.contracts.learner import ExecutionTrace, FindTrace, ListTraces, TracePage
from pml_common.contracts.registry import (
    CapabilityDescriptions,
    CapabilityHit,
    CapabilityPage,
    DescribeCapabilities,
    Discover,
    DiscoveryPage,
    ListCapabilities,
    ListTools,
    Reference,
    ReservedName,
    ReserveName,
    ResolveCapability,
    SetCachePolicy,
    SettledName,
    SettleName,
    ToolCatalog,
    ToolHit,
)
from pml_common.contracts.structure import DynamicCall, StaticStructure
from pml_common.contracts.tool import ToolDefinition
from pml_common.contracts.trace import LogLine
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.support.builders import (
    AT,
    CODE_HASH,
    READ,
    analyzed,
    rejected,
    unfenced,
    with_capability,
)
from services.gateway.tests.support.fake_graph import FakeGraph


@dataclass
class FakeServices:
    """Analyzer, executor, registry and learner in one.

    A program that says `syntax` is rejected; `ask` or `deny` decides its verdict; `fail` fails;
    `hang` does not end before `release` is set; `nested` calls a capability; of a submitted one a
    fence is taken off. Every other calls each tool it was granted once and returns their results.
    """

    bus: Bus
    tools: Sequence[ToolDefinition] = (READ,)
    requests: list[ExecutionRequested] = field(default_factory=list[ExecutionRequested])
    runs: list[RunWorkflow] = field(default_factory=list[RunWorkflow])
    names: dict[str, CapabilityRecord] = field(default_factory=dict[str, CapabilityRecord])
    reserved: dict[UUID, str] = field(default_factory=dict[UUID, str])
    settled: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])
    catalog: tuple[ToolDefinition, ...] = ()
    principals: list[str | None] = field(default_factory=list[str | None])
    """Principals that looked for capabilities."""
    described_for: list[str | None] = field(default_factory=list[str | None])
    """Principals whose programs' references were described."""
    reads_journals: bool = False
    is_degraded: bool = False
    is_busy: bool = False
    """The registry does not settle names in time."""
    refuses_names: bool = False
    """The registry refuses names: its programs are not what ran."""
    dynamic: tuple[DynamicCall, ...] = ()
    known_hits: tuple[CapabilityHit, ...] = ()
    graph: FakeGraph = field(default_factory=FakeGraph)
    traces: tuple[ExecutionTrace, ...] = ()
    logs: tuple[LogLine, ...] = ()
    """Lines that each program writes to its console, after `logs_omitted` others."""
    logs_omitted: int = 0
    trace_queries: list[ListTraces] = field(default_factory=list[ListTraces])
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(self) -> None:
        """Start consuming and serving."""
        await self.bus.consume(catalog.ANALYZER_ON_EXECUTION_REQUESTED, self._analyze)
        await self.bus.serve(catalog.ANALYZE, self._analyze_program)
        await self.bus.consume(catalog.EXECUTOR_ON_WORKFLOW_ACCEPTED, self._begin)
        await self.bus.consume(catalog.EXECUTOR_ON_RUN_WORKFLOW, self._run)
        await self.bus.serve(catalog.RESOLVE_CAPABILITY, self._resolve)
        await self.bus.serve(catalog.RESERVE_NAME, self._reserve)
        await self.bus.serve(catalog.SETTLE_NAME, self._settle)
        await self.bus.serve(catalog.DESCRIBE_CAPABILITIES, self._describe)
        await self.bus.serve(catalog.SET_CACHE_POLICY, self._set_cache)
        await self.bus.serve(catalog.LIST_CAPABILITIES, self._list)
        await self.bus.serve(catalog.DISCOVER, self._discover)
        await self.bus.serve(catalog.LIST_TOOLS, self._tools)
        await self.bus.serve(catalog.LIST_TRACES, self._traces)
        await self.bus.serve(catalog.FIND_TRACE, self._trace)
        await self.graph.serve(self.bus, self._resolve)

    async def _analyze(self, requested: ExecutionRequested) -> Sequence[Message]:
        self.requests.append(requested)
        of = Workflow(requested, "", "", 1.0, None)
        if "syntax" in requested.code:
            return [rejected(of)]
        verdicts: list[Verdict] = [each for each in ("ask", "deny") if each in requested.code]
        verdict = verdicts[0] if verdicts else "allow"
        analysis = analyzed(of, verdict, self.tools, name=requested.name)
        is_dry = requested.dry_run is not None
        found: dict[str, object] = {"dry_run": is_dry, "dynamic_calls": self.dynamic}
        if requested.submitted and requested.code.startswith("```"):
            found |= unfenced(requested.code)
        analysis = analysis.model_copy(update=found)
        return [with_capability(analysis) if "nested" in requested.code else analysis]

    async def _analyze_program(self, query: AnalyzeProgram) -> ProgramAnalysis:
        [message] = await self._analyze(query.requested)
        if isinstance(message, ExecutionAnalyzed):
            event_id = ids.effect_id(message.event_id, "of a query")
            await self.bus.publish(message.model_copy(update={"event_id": event_id}))
            return ProgramAnalysis(analyzed=message)
        assert isinstance(message, AnalysisRejected)
        return ProgramAnalysis(rejected=message)

    async def _begin(self, accepted: WorkflowAccepted) -> Sequence[Message]:
        return await self._run(accepted.run)

    async def _run(self, command: RunWorkflow) -> Sequence[Message]:
        self.runs.append(command)
        if "hang" in command.instrumented:
            await self.release.wait()
        outcomes = [await self._call(command, n) for n in range(len(command.grant.tools))]
        failed = "fail" in command.instrumented
        error = WorkflowError(kind="user_error", message="it was to fail") if failed else None
        fact = RunFinished(
            scope=command.scope,
            event_id=ids.effect_id(command.workflow_id, "run-finished"),
            workflow_id=command.workflow_id,
            principal=command.principal,
            capability=command.capability,
            success=not failed,
            result=[outcome.model_dump(mode="json") for outcome in outcomes],
            error=error,
            trace_id=ids.root_trace_id(command.workflow_id),
            started_at=self.bus.now().timestamp() * 1000,
            duration_ms=1.0,
            logs=self.logs,
            logs_omitted=self.logs_omitted,
            void="void" in command.instrumented,
        )
        entity = str(command.workflow_id)
        if self.reads_journals:  # raises Unreadable
            await self.bus.history(command.scope, entity, of=OWNER)
        before = await self.bus.salvage(OWNER, command.scope, entity)
        return [after(before[-1].sequence if before else 0, fact)]

    async def _call(self, command: RunWorkflow, number: int) -> ToolOutcome:
        node_id, tool = f"n{number + 1}", sorted(command.grant.tools)[number]
        query = CallTool(
            scope=command.scope,
            workflow_id=command.workflow_id,
            node_id=node_id,
            occurrence=0,
            tool=tool,
            args=command.args,
            grant_digest=command.grant.digest(),
            timeout_s=5.0,
        )
        return await self.bus.request(catalog.CALL_TOOL, query)

    async def _resolve(self, query: ResolveCapability) -> CapabilityRecord:
        self.principals.append(query.principal)
        by_id = {str(each.capability_id): each for each in self.names.values()}
        found = self.names.get(query.reference, by_id.get(query.reference))
        if found is None or (found.scope != query.scope and found.visibility != "public"):
            raise QueryFailed("not_found", f"no capability {query.reference!r} in {query.scope}")
        return found

    async def _reserve(self, query: ReserveName) -> ReservedName:
        """Reserve a name that no other capability has."""
        holder, code = self.names.get(query.name), query.analysis.capability.capability_id
        if holder is not None and holder.capability_id != code:
            raise QueryFailed("conflict", f"{query.name} of {holder.owner} is other code")
        self.reserved[query.workflow_id] = query.name
        return ReservedName(name=query.name, purpose="create")

    async def _settle(self, query: SettleName) -> SettledName:
        if self.is_busy:
            raise QueryFailed("unavailable", "the registry is busy")
        if self.refuses_names:
            raise QueryFailed("conflict", "its code is not what was signed")
        name = self.reserved.pop(query.workflow_id, None)
        if name is not None:
            self.settled.append((name, query.succeeded))
        return SettledName(name=name if query.succeeded else None)

    async def _describe(self, query: DescribeCapabilities) -> CapabilityDescriptions:
        self.described_for.append(query.principal)
        known = {each: self.names[each] for each in query.references if each in self.names}
        told = {
            each: CapabilityDescription.model_validate(known[each].model_dump()) for each in known
        }
        answers = (
            Reference(reference=each, capability=told.get(each)) for each in query.references
        )
        return CapabilityDescriptions(references=tuple(answers))

    async def _set_cache(self, query: SetCachePolicy) -> CapabilityRecord:
        """Store it under a new revision; refuse it, as the registry does, if tools are called."""
        before = await self._resolve(
            ResolveCapability(
                scope=query.scope, principal=query.principal, reference=query.reference
            )
        )
        if before.tools_used and not query.cache.force and query.cache.policy != "none":
            raise QueryFailed("conflict", f"{before.name} calls {before.tools_used[0]}")
        chosen = query.cache.model_dump()
        if before.cache == CachePolicy(**chosen, revision=before.cache.revision):
            return before
        cache = CachePolicy(**chosen, revision=before.cache.revision + 1)
        after = before.model_copy(update={"cache": cache})
        self.names |= {name: after for name, known in self.names.items() if known == before}
        return after

    async def _list(self, query: ListCapabilities) -> CapabilityPage:
        self.principals.append(query.principal)
        found = tuple(each for each in self.names.values() if each.scope == query.scope)
        return CapabilityPage(capabilities=found, total=len(found))

    async def _discover(self, query: Discover) -> DiscoveryPage:
        """Find one tool, unless the policy denies it."""
        self.principals.append(query.principal)
        if query.policy is None or query.policy.verdict_on(READ)[0] == "deny":
            return DiscoveryPage(hits=(), total=0)
        hit = ToolHit(
            id=READ.tool_id, name="read", score=0.5, description=query.intent, input_schema={}
        )
        hits = (*self.known_hits, hit)
        return DiscoveryPage(hits=hits, total=len(hits), degraded=self.is_degraded)

    async def _tools(self, query: ListTools) -> ToolCatalog:
        return ToolCatalog(tools=self.catalog)

    async def _traces(self, query: ListTraces) -> TracePage:
        self.trace_queries.append(query)
        found = [
            each
            for each in self.traces
            if query.capability_id in (None, each.capability_id)
            and query.workflow_id in (None, each.workflow_id)
        ]
        page = sorted(found, key=lambda each: -each.executed_at)[query.offset :][: query.limit]
        return TracePage(traces=tuple(page), total=len(found))

    async def _trace(self, query: FindTrace) -> ExecutionTrace:
        for trace in self.traces:
            if trace.trace_id == query.trace_id:
                return trace
        raise QueryFailed("not_found", f"no trace {query.trace_id} in {query.scope}")


def record(of: Workflow, name: str, code_hash: str = CODE_HASH) -> CapabilityRecord:
    """Build a capability in the workflow's scope."""
    return CapabilityRecord(
        record_id=ids.record_id(ids.capability_id(of.scope, code_hash)),
        owner="agent-7",
        capability_id=ids.capability_id(of.scope, code_hash),
        scope=of.scope,
        fqdn=f"{of.scope}.{name.replace(':', '.')}.1f3e",
        name=name,
        named=True,
        listed=True,
        code=of.requested.code,
        code_hash=code_hash,
        structure=StaticStructure(),
        created_by="agent-7",
        created_at=AT,
        updated_at=AT,
    )
