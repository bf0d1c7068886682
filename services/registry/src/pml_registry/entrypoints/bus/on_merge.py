"""Handles `plan-merge` and `merge-capabilities`."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pml_analysis.result_schemas import result_schema
from pml_common.bus.errors import QueryFailed
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.dns import ChangedRecord, DnsQuery
from pml_common.contracts.merging import MergeCapabilities, MergePlan, MergeSource, PlanMerge
from pml_common.contracts.references import PREFIX
from pml_common.contracts.structure import CapabilityNode
from pml_common.contracts.tool import ToolDefinition
from pml_registry.application.record_service import RecordService
from pml_registry.application.resolution import Meant
from pml_registry.domain.pipelines import Misfit, Step, pipeline
from pml_registry.domain.visibility import Viewer
from pml_registry.entrypoints.bus.on_execution_analyzed import on_execution_analyzed
from pml_registry.ports import CodeHashing, ToolStore
from pml_registry.ports.vectors import Embedder

_LONGEST_INTENT = 1000


@dataclass(frozen=True)
class Merging:
    """The parts that the handlers work with."""

    service: RecordService
    tools: ToolStore
    embedder: Embedder
    hashing: CodeHashing


async def on_plan_merge(query: PlanMerge, merging: Merging) -> MergePlan:
    """Build the program of a merge. Raises QueryFailed: `not_found`, and `invalid` where the
    capabilities do not fit one after the other."""
    viewer = _viewer(query)
    made = await _made_before(query, merging)
    if made is not None:
        record = made.record
        return MergePlan(code=record.code, intent=record.description, sources=(), made=made)
    meant = await _meant(query.sources, viewer, merging)
    sources = tuple(_source(viewer, each) for each in meant)
    code, notices = query.code, [notice for each in meant for notice in each.record.notices]
    if code is None:
        tools = await merging.tools.tools(viewer.scope, None)
        steps = [
            await _step(source.reference, each, tools)
            for source, each in zip(sources, meant, strict=True)
        ]
        try:
            built = pipeline(steps)
        except Misfit as misfit:
            raise QueryFailed(
                "invalid", f"they do not fit: {misfit}; give `code` that joins them"
            ) from misfit
        code = built.code
        notices += built.notices
    described = (each.record.description or each.record.name for each in meant)
    return MergePlan(
        code=code,
        intent=", then ".join(described)[:_LONGEST_INTENT],
        sources=sources,
        notices=tuple(notices),
    )


async def on_merge_capabilities(query: MergeCapabilities, merging: Merging) -> ChangedRecord:
    """Register the program of a merge. Raises QueryFailed: `not_found`; `conflict` where another
    has the name, or the program is a named record already; `invalid` where it is no name, or the
    program does not call all of the sources."""
    viewer = _viewer(query)
    made = await _made_before(query, merging)
    if made is not None:
        return made
    meant = await _meant(query.sources, viewer, merging)
    analysis = query.analysis
    if analysis.scope != viewer.scope or analysis.dry_run:
        raise QueryFailed("invalid", f"the analysis is of no program of {viewer.scope}")
    notices = _require_calls(analysis, [_source(viewer, each) for each in meant])
    await _store(analysis, merging)
    after, changed = await merging.service.merge(
        viewer,
        query.request_id,
        query.name,
        analysis.capability.capability_id,
        [f"{each.record.fqdn}@{each.record.version}" for each in meant],
        analysis.intent or "",
    )
    return (await _changed(after, merging, changed=changed)).model_copy(
        update={"notices": tuple(notices)}
    )


async def _meant(references: Sequence[str], viewer: Viewer, merging: Merging) -> Sequence[Meant]:
    return [await merging.service.resolution.resolve(viewer, each) for each in references]


def _source(viewer: Viewer, meant: Meant) -> MergeSource:
    """Return the version that is meant, by a reference to exactly this one."""
    record = meant.record
    place = "" if record.scope == viewer.scope else f"{record.scope}:"
    return MergeSource(
        reference=f"{PREFIX}{place}{record.name}@{record.version}",
        fqdn=record.fqdn,
        name=record.name,
        version=record.version,
        code_hash=record.code_hash,
    )


async def _step(reference: str, meant: Meant, tools: Sequence[ToolDefinition]) -> Step:
    record = meant.record
    takes = record.parameters_schema
    gives = await asyncio.to_thread(result_schema, record.code, tools=tools, parameters=takes)
    return Step(reference, takes, gives)


def _require_calls(analysis: ExecutionAnalyzed, sources: Sequence[MergeSource]) -> Sequence[str]:
    """Return notices about sources that the program calls without a version. Raises QueryFailed
    for those that it does not call."""
    nodes = (node for node in analysis.structure.nodes if isinstance(node, CapabilityNode))
    direct = {node.capability_id for node in nodes}
    called = {
        each.code_hash: each for each in analysis.capabilities if str(each.capability_id) in direct
    }
    missing = [source.reference for source in sources if source.code_hash not in called]
    if missing:
        calls = ", ".join(f'mcp.call("{reference}", …)' for reference in missing)
        raise QueryFailed(
            "invalid", f"the code does not call all that it is merged from: add {calls}"
        )
    return [
        f"the code calls {source.name} without a version: it gets the latest, whatever that is then"
        for source in sources
        if not all("@" in reference for reference in called[source.code_hash].called_as)
    ]


async def _store(analysis: ExecutionAnalyzed, merging: Merging) -> None:
    """Store the behaviour, as that of any analysed program."""
    capabilities = merging.service.resolution.capabilities
    handled = await on_execution_analyzed(
        (analysis,), capabilities, merging.embedder, merging.hashing
    )
    for error in handled.failed.values():
        raise QueryFailed("invalid", str(error)) from error
    for facts in handled.facts.values():
        for fact in facts:
            await merging.service.publish(fact)


async def _made_before(
    query: PlanMerge | MergeCapabilities, merging: Merging
) -> ChangedRecord | None:
    """Return the answer to a request that is repeated."""
    record_id = await merging.service.records.made(query.scope, query.request_id)
    if record_id is None:
        return None
    meant = await merging.service.resolution.resolve(Viewer(query.scope), str(record_id))
    return await _changed(meant, merging, changed=True)


async def _changed(meant: Meant, merging: Merging, *, changed: bool) -> ChangedRecord:
    record = meant.record
    return ChangedRecord(
        fqdn=record.fqdn,
        record=record,
        changed=changed,
        merged_from=await merging.service.records.merged_from(
            Viewer(record.scope), record.scope, record.record_id
        ),
        notices=record.notices,
    )


def _viewer(query: DnsQuery) -> Viewer:
    return Viewer(query.scope, query.principal, query.is_admin)
