"""What the gateway owns: workflows, approvals, tool calls."""

from typing import ClassVar, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field, JsonValue

from pml_common.contracts import ids
from pml_common.contracts.base import Contract, Event, Query
from pml_common.contracts.capability import CapabilityName
from pml_common.contracts.decision import Decision, DryRun, Policy
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.tool import JsonObject, ToolDefinition


class ExecutionRequested(Event):
    """A workflow was accepted and stored.

    `known_as` are the names, the present one first, of the capability whose code this is, where it
    was asked for by name; `name` is what a program given as code shall be learned by. `layers` are
    the ids of a DAG's tasks, layer by layer, where its caller wants a person between them.
    """

    workflow_id: UUID
    principal: str
    code: str
    intent: str | None = None
    name: CapabilityName | None = None
    known_as: tuple[str, ...] = ()
    args: JsonObject = Field(default_factory=dict)
    policy: Policy = Policy()
    dry_run: DryRun | None = None
    layers: tuple[tuple[str, ...], ...] = ()
    requested_at: AwareDatetime


class ApprovalRequested(Event):
    """A workflow waits for a person: before it runs, or at a call that only the run could tell."""

    workflow_id: UUID
    approval_id: UUID
    decision: Decision
    expires_at: AwareDatetime


class ApprovalDecided(Event):
    """A person, or the clock, decided."""

    workflow_id: UUID
    approval_id: UUID
    outcome: Literal["approved", "denied", "expired"]
    decided_by: str
    decided_at: AwareDatetime


class WorkflowFinished(Event):
    """A workflow reached its end; what its caller is answered with."""

    workflow_id: UUID
    status: Literal["success", "error"]
    capability_id: UUID | None = None
    result: JsonValue = None
    error: WorkflowError | None = None
    finished_at: AwareDatetime


class ToolsListed(Event):
    """An MCP server declared its tools: all of them, each time.

    `listed_at` is when it did: an older list, delivered late, replaces no newer one.
    """

    entity_field: ClassVar[str] = "server"

    server: str
    tools: tuple[ToolDefinition, ...]
    listed_at: AwareDatetime | None = None


class CallTool(Query):
    """Make one tool call, at most once per workflow, node, occurrence and attempt.

    `attempt` is `again` where the first one's outcome is unknown and the tool may be called again.
    `grant_digest` names the grant that the run has. `asked_first_at` is set the first time it is
    asked for by the one executor that has stored its start: nobody can have made it before. Not
    when it is asked again, nor in a replay.
    """

    workflow_id: UUID
    node_id: str
    occurrence: int = Field(ge=0)
    attempt: Literal["first", "again"] = "first"
    tool: str
    args: JsonObject
    grant_digest: str
    timeout_s: float = Field(gt=0)
    asked_first_at: AwareDatetime | None = None

    @property
    def idempotency_key(self) -> UUID:
        """Derived, never told: what a repeated call has in common with the first."""
        first = ids.call_trace_id(self.workflow_id, self.node_id, self.occurrence)
        return first if self.attempt == "first" else ids.effect_id(first, "again")


class ToolOutcome(Contract):
    """How a tool call ended. `refused`: the grant does not cover it and nothing was called; `ask`:
    nothing was called, and a person may be asked about it; `unknown`: it was started and nobody can
    say how it ended."""

    status: Literal["ok", "tool_error", "refused", "ask", "timeout", "unknown"]
    result: JsonValue = None
    message: str | None = None
