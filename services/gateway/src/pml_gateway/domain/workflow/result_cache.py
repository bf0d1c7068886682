"""Conditions under which the result of an earlier run answers a call of a capability.

The cache stores the workflow's id, not its result, which is stored once. The present policy, tools
and capabilities decide whether it may be returned.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord
from pml_common.contracts.decision import Policy
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, ToolDefinition, args_hash
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.workflow_state import Workflow


@dataclass(frozen=True)
class ResultKey:
    """Key under which calls share a result: the capability, the revision of its cache settings,
    and the digest (SHA-256, hex) of its code's hash and the arguments."""

    scope: Scope
    capability_id: UUID
    revision: int
    digest: str


@dataclass(frozen=True)
class CachedResult:
    """The workflow that has the result, and when the entry expires; None: as long as the key is
    used."""

    workflow_id: UUID
    expires_at: datetime | None

    def is_valid(self, now: datetime) -> bool:
        """Whether it has not expired."""
        return self.expires_at is None or now < self.expires_at


@dataclass(frozen=True)
class CurrentState:
    """The present policy, the tools as their servers list them, and the capabilities that a
    program calls, by the names it calls them by."""

    policy: Policy
    find: Callable[[str], ToolDefinition | None]
    nested: Mapping[str, CapabilityDescription]


def is_cached(record: CapabilityRecord, request: ExecuteRequest) -> bool:
    """Whether a call uses the cache at all. A dry run does not answer a real call; an idempotency
    key identifies an execution of its own, whose first response it always gets."""
    chosen = record.cache.policy != "none"
    return chosen and not request.dry_run and request.idempotency_key is None


def key_of(record: CapabilityRecord, args: JsonObject) -> ResultKey:
    """Return the key of a call with these arguments; a change of code or settings changes it."""
    what = json.dumps([record.code_hash, args_hash(args)])
    digest = hashlib.sha256(what.encode()).hexdigest()
    return ResultKey(record.scope, record.capability_id, record.cache.revision, digest)


def cacheable(
    workflow: Workflow, record: CapabilityRecord, find: Callable[[str], ToolDefinition | None]
) -> CachedResult | None:
    """Return the cache entry of a workflow, or None: it must have run as that capability without
    approval, succeeded with a result, and been able only to read, unless `force` is set. An
    approval is for one run, and a list of the tools changes with the policy and the servers."""
    analysis, ended_at = workflow.analysis, workflow.finished_at
    if not workflow.proves_its_program or analysis is None or ended_at is None:
        return None
    if analysis.reads_catalog:
        return None
    asked = workflow.approval is not None or analysis.decision.verdict != "allow"
    if asked or analysis.capability.capability_id != record.capability_id:
        return None
    if not record.cache.force and not _only_reads(analysis, find):
        return None
    ttl_s = record.cache.ttl_s
    return CachedResult(
        workflow.workflow_id, None if ttl_s is None else ended_at + timedelta(seconds=ttl_s)
    )


def _only_reads(analysis: ExecutionAnalyzed, find: Callable[[str], ToolDefinition | None]) -> bool:
    known = (find(tool.tool) for tool in analysis.decision.tools)
    return all(tool is not None and bool(tool.annotations.read_only) for tool in known)


def outdated(
    analysis: ExecutionAnalyzed, record: CapabilityRecord, now: CurrentState
) -> str | None:
    """Return why the decision would be another one now, or None. The cache does not answer what
    the policy denies or asks about now, nor what changed tools would answer."""
    verdict, why = now.policy.verdict_on_capability((record.name, *record.aliases))
    if verdict != "allow":
        return f"capability {record.name}: {why}"
    reasons = (
        *(_tool_changed(tool.tool, tool.definition_hash, now) for tool in analysis.decision.tools),
        *(
            _capability_changed(reference, nested.code_hash, now)
            for nested in analysis.capabilities
            for reference in nested.called_as
        ),
    )
    return next((reason for reason in reasons if reason is not None), None)


def _tool_changed(tool_id: str, definition_hash: str, now: CurrentState) -> str | None:
    tool = now.find(tool_id)
    if tool is None or tool.definition_hash != definition_hash:
        return f"{tool_id} is no longer listed, or has changed"
    verdict, why = now.policy.verdict_on(tool)
    return None if verdict == "allow" else f"{tool_id}: {why}"


def _capability_changed(reference: str, code_hash: str, now: CurrentState) -> str | None:
    found = now.nested.get(reference)
    if found is None or found.code_hash != code_hash:
        return f"{reference} is another capability now"
    verdict, why = now.policy.verdict_on_capability((found.name, *found.aliases))
    return None if verdict == "allow" else f"capability {found.name}: {why}"


def nested_references(analysis: ExecutionAnalyzed) -> tuple[str, ...]:
    """Return the names by which a program, and the capabilities it calls, call capabilities."""
    return tuple(name for nested in analysis.capabilities for name in nested.called_as)
