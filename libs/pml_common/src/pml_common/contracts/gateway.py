"""Contracts of the gateway: workflows, approvals, tool calls."""

from typing import ClassVar, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field, JsonValue

from pml_common.contracts import ids
from pml_common.contracts.base import Contract, Event, Query, Signal
from pml_common.contracts.capability import CapabilityName, WholeTag
from pml_common.contracts.decision import Decision, DryRun, Policy
from pml_common.contracts.error import Fault, WorkflowError
from pml_common.contracts.source import CapabilitySource
from pml_common.contracts.tool import JsonObject, QuarantinedTool, ToolDefinition


class ExecutionRequested(Event):
    """A workflow was accepted and stored.

    `known_as` are the names, the current one first, of the capability that was requested by name;
    `name` is the name for a capability learned from submitted code; with `update` that code becomes
    the next version of the capability that has the name, with this tag and summary. `layers` are
    the ids of a DAG's tasks, layer by layer, if the caller wants an approval between layers.
    `source` is where `code` comes from; None if it was sent as it is, or is known. `called_as` is
    the name of the named capability that was called, `discovery_id` the discovery that the caller
    followed. `direct_tool` is the tool of a direct call: the gateway makes it itself, and `code`
    is what it stands for. `submitted`: a client wrote `code` for this request, so that its analysis
    may take a Markdown fence off it, and complete it where it ends without its result.
    """

    workflow_id: UUID
    principal: str
    code: str
    intent: str | None = None
    name: CapabilityName | None = None
    update: bool = False
    version_tag: WholeTag | None = None
    change_summary: str = ""
    known_as: tuple[str, ...] = ()
    args: JsonObject = Field(default_factory=dict)
    policy: Policy = Policy()
    dry_run: DryRun | None = None
    layers: tuple[tuple[str, ...], ...] = ()
    source: CapabilitySource | None = None
    called_as: str | None = None
    discovery_id: UUID | None = None
    direct_tool: str | None = None
    submitted: bool = False
    requested_at: AwareDatetime


class ApprovalRequested(Event):
    """A workflow waits for a person's approval: before it runs, or at a call while it is parked."""

    workflow_id: UUID
    approval_id: UUID
    decision: Decision
    expires_at: AwareDatetime


class DecidedThrough(Contract):
    """The way of a decision that came without the approver's key: over the agent's connection, from
    its client, by a form (`elicitation`). The client's name and version are as it gives them."""

    way: Literal["elicitation"]
    client: str | None = None
    client_version: str | None = None


class ApprovalDecided(Event):
    """An approval was decided by a person, or expired. `decided_through` is missing where the
    decision came with the approver's key."""

    workflow_id: UUID
    approval_id: UUID
    outcome: Literal["approved", "denied", "expired"]
    decided_by: str
    decided_at: AwareDatetime
    decided_through: DecidedThrough | None = None


class WorkflowFinished(Event):
    """A workflow ended; holds the outcome that its caller gets."""

    workflow_id: UUID
    status: Literal["success", "error"]
    capability_id: UUID | None = None
    result: JsonValue = None
    error: WorkflowError | None = None
    finished_at: AwareDatetime


class WorkflowDataDeleted(Event):
    """The data of a workflow that had ended was deleted by its caller, `deleted_by`: every service
    deletes what it keeps of it, and keeps nothing of it that comes later."""

    workflow_id: UUID
    deleted_by: str
    deleted_at: AwareDatetime


class PrincipalDataDeleted(Event):
    """The data of a principal's workflows was deleted on request: every service deletes what it
    keeps of the principal from before `deleted_at`."""

    entity_field: ClassVar[str] = "deletion_id"

    deletion_id: UUID
    principal: str
    deleted_by: str
    deleted_at: AwareDatetime


class ToolsListed(Event):
    """An MCP server listed its tools: always the complete list, but for its tools in quarantine.

    `listed_at` is the time of the list: an older list, delivered late, does not replace a newer
    one.
    """

    entity_field: ClassVar[str] = "server"

    server: str
    tools: tuple[ToolDefinition, ...]
    listed_at: AwareDatetime | None = None
    quarantined: tuple[QuarantinedTool, ...] = ()


class ObservedOutput(Contract):
    """The schema of results of one tool, under the definition with this hash."""

    name: str
    definition_hash: str
    result_schema: JsonObject


class OutputsObserved(Event):
    """Results of tools without an output schema, of one server, showed other types than before.
    Each schema covers the results that the sender saw so far; they are merged with those known."""

    entity_field: ClassVar[str] = "server"

    server: str
    outputs: tuple[ObservedOutput, ...]


class WorkflowAwaited(Signal):
    """Gateways tell each other whether their callers wait for one workflow.

    `joined`: a further caller waits for it at `gateway`; `leaving`: the last one there has
    cancelled its call, and asks whether others wait; `staying`: one does, at `gateway`.
    """

    workflow_id: UUID
    gateway: UUID
    what: Literal["joined", "leaving", "staying"]


class CallTool(Query):
    """Make one tool call; one that may not be repeated at most once per workflow, node, occurrence
    and attempt.

    `attempt` is `again` if the first one's outcome is unknown and the tool may be called again.
    `grant_digest` identifies the run's grant. `asked_first_at` is set where the executor knows that
    the call has not been requested before: no earlier one can have come to it. It is not set on a
    repeated request, nor in a replay.
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
        """The key shared by repeated requests for one call; derived from its fields."""
        first = ids.call_trace_id(self.workflow_id, self.node_id, self.occurrence)
        return first if self.attempt == "first" else ids.effect_id(first, "again")


class AskOutcome(Query):
    """Ask how a workflow stands."""

    workflow_id: UUID


class WorkflowOutcome(Contract):
    """`unknown` if no such workflow was accepted in the scope; `failed`, too, where a run succeeded
    without a result (`RunFinished.void`). `capability_id` is that of its program, once it is
    analysed; None for a dry run."""

    state: Literal["unknown", "under_way", "succeeded", "failed"]
    capability_id: UUID | None = None


class ToolOutcome(Contract):
    """The outcome of a tool call. `refused`: grant, policy or the run's state forbid it, and
    nothing was called; `ask`: nothing was called, and a person may be asked about it; `unknown`: it
    was started and its outcome cannot be determined. `fault` is as in `WorkflowError`; `code` is
    that of the JSON-RPC error with which its server answered in place of a result."""

    status: Literal["ok", "tool_error", "refused", "ask", "timeout", "unknown"]
    result: JsonValue = None
    message: str | None = None
    fault: Fault | None = None
    code: int | None = None
