"""The demo's requests to the gateway's REST API."""

from collections.abc import Callable, Mapping
from time import monotonic, sleep
from typing import Literal, TypeVar
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, JsonValue, ValidationError

from pml_cli.client import Client, Json
from pml_cli.demo.narrator import DemoFailed
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.fault_words import faults_of
from pml_common.contracts.learner import TracePage
from pml_common.contracts.registry import DiscoveryPage, ToolCatalog
from pml_common.contracts.structure import StaticStructure
from pml_common.contracts.trace import BranchDecision

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
POLL_SECONDS = 0.05


class PendingApproval(BaseModel):
    """The approval requested from a person."""

    reasons: tuple[str, ...]
    tools: tuple[str, ...]
    expires_at: AwareDatetime


class Answer(BaseModel):
    """An execute response."""

    status: Literal["success", "error", "approval_required", "suggestions", "running"]
    workflow_id: UUID
    capability_id: UUID | None = None
    capability_name: str | None = None
    result: JsonValue = None
    approval: PendingApproval | None = None
    error: WorkflowError | None = None


class WorkflowState(BaseModel):
    """A workflow's state."""

    status: str
    structure: StaticStructure | None
    executed_path: tuple[str, ...] = ()
    decisions: tuple[BranchDecision, ...] = ()
    duration_ms: float | None = None


class ServerState(BaseModel):
    """State of the gateway's connection to one MCP server."""

    name: str
    state: str
    error: str | None


class ServerStates(BaseModel):
    """All MCP servers' states."""

    servers: tuple[ServerState, ...]


class Session:
    """Requests to one gateway with validated responses; `approver` are the headers of a decision.
    Every method raises CommandError."""

    def __init__(self, client: Client, approver: Mapping[str, str]) -> None:
        self._client = client
        self._approver = approver

    def execute(self, request: Mapping[str, object]) -> Answer:
        """Request a run."""
        return _read(Answer, self._client.post("/api/execute", request))

    def approve(self, workflow_id: UUID) -> Answer:
        """Approve a workflow as a person would, and wait for its end."""
        decision = {"decision": "approve", "wait": True}
        path = f"/api/workflows/{workflow_id}/approval"
        return _read(Answer, self._client.post(path, decision, self._approver))

    def workflow(self, workflow_id: UUID) -> WorkflowState:
        """A workflow's state."""
        return _read(WorkflowState, self._client.get(f"/api/workflows/{workflow_id}"))

    def traces(self, workflow_id: UUID) -> TracePage:
        """The recorded traces of a workflow."""
        return _read(TracePage, self._client.get(f"/api/workflows/{workflow_id}/trace"))

    def traces_of(self, capability_id: UUID) -> TracePage:
        """The recorded traces of a capability, newest first."""
        return _read(TracePage, self._client.get(f"/api/traces/{capability_id}"))

    def capability(self, capability_id: UUID) -> CapabilityRecord:
        """A capability's record."""
        return _read(CapabilityRecord, self._client.get(f"/api/capabilities/{capability_id}"))

    def discover(self, intent: str) -> DiscoveryPage:
        """Tools and capabilities for an intent, best first."""
        return _read(DiscoveryPage, self._client.post("/api/discover", {"intent": intent}))

    def tools(self) -> frozenset[str]:
        """Ids of the tools that the gateway can call and the registry can discover."""
        catalog = _read(ToolCatalog, self._client.get("/api/tools"))
        everything = {"intent": "everything", "type": "tool", "limit": 100}
        known = _read(DiscoveryPage, self._client.post("/api/discover", everything))
        return frozenset(tool.tool_id for tool in catalog.tools) & {
            hit.id for hit in known.hits if hit.type == "tool"
        }

    def server_errors(self) -> str:
        """The gateway's errors about MCP servers that it cannot reach."""
        known = _read(ServerStates, self._client.get("/api/servers")).servers
        return "; ".join(f"{one.name} is {one.state}: {one.error}" for one in known if one.error)


def until(
    found: Callable[[], T | None],
    what: str,
    within: float,
    otherwise: Callable[[], str] = lambda: "",
) -> T:
    """Poll until there is a result. Raises DemoFailed after `within` seconds, with the reason from
    `otherwise`."""
    deadline = monotonic() + within
    while True:
        if answer := found():
            return answer
        if monotonic() > deadline:
            reason = otherwise()
            raise DemoFailed(f"timed out after {within:g} s, waiting until {what}. {reason}")
        sleep(POLL_SECONDS)


def _read(kind: type[M], body: Json) -> M:
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        raise DemoFailed(
            f"the gateway's answer is not a valid {kind.__name__}: {faults_of(error)[0]}"
        ) from error
