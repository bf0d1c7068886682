"""Operations for agents, and what they compose and name."""

from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol
from uuid import UUID

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.curation import SavedCapability
from pml_common.contracts.dns import ChangedRecord, QueryRecords, RecordPage
from pml_common.contracts.gateway import DecidedThrough, ExecutionRequested, ToolOutcome
from pml_common.contracts.registry import Discover, DiscoveryPage
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_common.errors import Retryable
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.domain.api.approval_form import ApprovalForm, FormAnswer
from pml_gateway.domain.api.curation import CurateNames, SaveProgram
from pml_gateway.domain.api.records import MergeSources
from pml_gateway.domain.api.task_results import GetTaskResult
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports.caller_side import HERE, CallerSide
from pml_gateway.ports.callers import Caller


class AgentApi(Protocol):
    """Operations for agents, the same over every protocol; callers are identified already.

    Raises the errors of `domain.api.errors`.
    """

    async def execute(
        self,
        scope: Scope,
        principal: str,
        request: ExecuteRequest,
        side: CallerSide = HERE,
    ) -> ExecuteResponse:
        """Execute a program or a capability, and wait for its end, its approval, or its time."""
        ...

    async def result(
        self, caller: Caller, asked: GetTaskResult, side: CallerSide = HERE
    ) -> ExecuteResponse:
        """Return the result of a workflow or of one of its tasks, or how the workflow stands.
        Raises ResultUnavailable."""
        ...

    async def stop(self, caller: Caller, workflow_id: UUID, reason: str | None) -> ExecuteResponse:
        """Cancel a workflow, and wait a few seconds for its end."""
        ...

    async def discover(self, query: Discover) -> DiscoveryPage:
        """Rank tools and capabilities by how well they serve an intent."""
        ...

    async def query_records(self, query: QueryRecords) -> RecordPage:
        """Find records of capabilities."""
        ...

    async def curate(
        self, scope: Scope, principal: str, request: CurateNames, side: CallerSide = HERE
    ) -> ToolOutcome | ExecuteResponse:
        """Suggest names for capabilities that have none; to give them is the tool `learn:curate`,
        under the policy like any."""
        ...

    async def call_tool(
        self,
        scope: Scope,
        principal: str,
        tool_id: str,
        args: JsonObject,
        timeout_s: float,
        side: CallerSide = HERE,
    ) -> ToolOutcome | ExecuteResponse:
        """Call one real tool: as a workflow of this call alone where the policy allows it, as a
        program that waits for approval where it asks, never where it denies (`refused`)."""
        ...


class TaskState(NamedTuple):
    """A workflow, the response for its state, the form for the approval that it waits for, where
    the caller's user may decide that, and what its tool's server asks the client for, by key."""

    workflow: Workflow
    response: ExecuteResponse
    form: ApprovalForm | None
    inputs: Mapping[str, JsonObject]


class TaskApi(Protocol):
    """Workflows as tasks of their callers. Every method raises NotFound for those of others, and
    Unavailable."""

    async def keep(self, caller: Caller, workflow_id: UUID) -> None:
        """Have every gateway find a task that was begun here."""
        ...

    async def state(self, caller: Caller, workflow_id: UUID, *, shows_forms: bool) -> TaskState:
        """Return the state of a task."""
        ...

    async def answer(
        self,
        caller: Caller,
        workflow_id: UUID,
        answers: Mapping[str, FormAnswer],
        inputs: Mapping[str, JsonObject],
        through: DecidedThrough,
    ) -> None:
        """Take the answers to the form and to the requests that are open, by their keys; others
        are ignored. Raises InvalidRequest."""
        ...

    async def cancel(self, caller: Caller, workflow_id: UUID) -> None:
        """Cancel a task; one that has ended stays as it is."""
        ...


class OpenInputs(Protocol):
    """Stores what servers of tools ask the clients of tasks for, for all replicas. Every method may
    raise BusUnavailable."""

    async def open(
        self, scope: Scope, workflow_id: UUID, requests: Mapping[str, JsonObject], ttl_s: float
    ) -> None:
        """Make these MCP requests, by key, the ones that a workflow waits for, for `ttl_s` seconds
        at most."""
        ...

    async def find(self, scope: Scope, workflow_id: UUID) -> Mapping[str, JsonObject]:
        """Return the requests of a workflow that have no answer yet."""
        ...

    async def answer(
        self, scope: Scope, workflow_id: UUID, key: str, answer: JsonObject, ttl_s: float
    ) -> None:
        """Store the answer to a request."""
        ...

    async def answers(
        self, scope: Scope, workflow_id: UUID, keys: Collection[str]
    ) -> Mapping[str, JsonObject]:
        """Return the answers to those of these requests that have one."""
        ...


class ComposedPrograms(Protocol):
    """Programs that PML writes, and that are analysed and stored like any. Raises QueryFailed."""

    async def merge(
        self, caller: Caller, asked: MergeSources, request_id: UUID, timeout_s: float
    ) -> ChangedRecord:
        """Make one capability of several; a repetition under the same id is answered alike."""
        ...

    async def save(self, caller: Caller, asked: SaveProgram, timeout_s: float) -> SavedCapability:
        """Give a name to a program that has succeeded, or to what is lifted from it. Idempotent."""
        ...


class NameUnsettled(Retryable):
    """The registry does not tell whether a program can have the name `name`, or has got it."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(why)
        self.name = name


class CapabilityNames(Protocol):
    """Names of capabilities."""

    async def name_of(self, scope: Scope, capability_id: UUID) -> str | None:
        """Return its present name; None where the registry does not answer in time."""
        ...

    async def reserve(
        self, requested: ExecutionRequested, analysis: ExecutionAnalyzed
    ) -> str | None:
        """Reserve the requested name for the program's workflow; return why it cannot be had, None
        if it can. Raises NameUnsettled."""
        ...

    async def settle(self, analysis: ExecutionAnalyzed, *, succeeded: bool) -> str | None:
        """Give the reserved name to the capability of a workflow that has succeeded, or release
        it; return the name that was given now, None where none was. Raises NameUnsettled where the
        registry does not tell: it gives or releases the name later."""
        ...
