"""When the result of an earlier run answers a call of a capability (B11).

What is kept is which workflow to look at, not its result: that stands in one place. Whether it may
be told now is decided by what holds now.
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
    """What two calls must have in common to have one result: the capability, the revision of its
    cache settings, and the digest (SHA-256, hex) of its code's hash and the arguments."""

    scope: Scope
    capability_id: UUID
    revision: int
    digest: str


@dataclass(frozen=True)
class Kept:
    """The workflow whose result it is, and until when; None: for as long as the key is asked."""

    workflow_id: UUID
    expires_at: datetime | None

    def holds(self, now: datetime) -> bool:
        """Whether its time is not over."""
        return self.expires_at is None or now < self.expires_at


@dataclass(frozen=True)
class Standing:
    """How things stand now: the policy, the tools as their servers list them, and what the
    capabilities that a program calls are, by the names it calls them by."""

    policy: Policy
    find: Callable[[str], ToolDefinition | None]
    nested: Mapping[str, CapabilityDescription]


def is_cached(record: CapabilityRecord, request: ExecuteRequest) -> bool:
    """Whether a call goes by the cache at all. A dry run is no answer to a real call; a key stands
    for an execution of its own, whose first answer it gets for ever."""
    chosen = record.cache.policy != "none"
    return chosen and not request.dry_run and request.idempotency_key is None


def key_of(record: CapabilityRecord, args: JsonObject) -> ResultKey:
    """Under which the result of a call with these arguments is kept: a change of code or settings
    leaves behind what was."""
    what = json.dumps([record.code_hash, args_hash(args)])
    digest = hashlib.sha256(what.encode()).hexdigest()
    return ResultKey(record.scope, record.capability_id, record.cache.revision, digest)


def worth_keeping(
    workflow: Workflow, record: CapabilityRecord, find: Callable[[str], ToolDefinition | None]
) -> Kept | None:
    """What to keep of a workflow, if anything: it ran as that capability, nobody had to be asked,
    it succeeded, and it could only read, unless that is forced. An approval is for one run."""
    analysis, ended_at = workflow.analysis, workflow.finished_at
    if workflow.state != "succeeded" or analysis is None or ended_at is None:
        return None
    asked = workflow.approval is not None or analysis.decision.verdict != "allow"
    if asked or analysis.capability.capability_id != record.capability_id:
        return None
    if not record.cache.force and not _only_reads(analysis, find):
        return None
    ttl_s = record.cache.ttl_s
    return Kept(
        workflow.workflow_id, None if ttl_s is None else ended_at + timedelta(seconds=ttl_s)
    )


def _only_reads(analysis: ExecutionAnalyzed, find: Callable[[str], ToolDefinition | None]) -> bool:
    known = (find(tool.tool) for tool in analysis.decision.tools)
    return all(tool is not None and bool(tool.annotations.read_only) for tool in known)


def outdated(analysis: ExecutionAnalyzed, record: CapabilityRecord, now: Standing) -> str | None:
    """Why what was decided then would not be decided like that now, or None. What is denied or
    asked about now is not told from the cache; nor is what other tools would answer."""
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


def _tool_changed(tool_id: str, definition_hash: str, now: Standing) -> str | None:
    tool = now.find(tool_id)
    if tool is None or tool.definition_hash != definition_hash:
        return f"{tool_id} is not there any more, or not as it was"
    verdict, why = now.policy.verdict_on(tool)
    return None if verdict == "allow" else f"{tool_id}: {why}"


def _capability_changed(reference: str, code_hash: str, now: Standing) -> str | None:
    found = now.nested.get(reference)
    if found is None or found.code_hash != code_hash:
        return f"{reference} is another capability now"
    verdict, why = now.policy.verdict_on_capability((found.name, *found.aliases))
    return None if verdict == "allow" else f"capability {found.name}: {why}"


def nested_references(analysis: ExecutionAnalyzed) -> tuple[str, ...]:
    """The names by which a program and what it calls call capabilities."""
    return tuple(name for nested in analysis.capabilities for name in nested.called_as)
