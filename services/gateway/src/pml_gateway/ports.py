"""Ports: what the application uses of the outside world, and what entrypoints use of it.

long on purpose: all ports of the gateway in one file, by subject (tools, callers, agents,
workflows, results).
"""
# long on purpose: the ports of one service, read beside each other

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, NamedTuple, Protocol
from uuid import UUID

from pydantic import JsonValue

from pml_common.contracts.acceptance import WorkflowAccepted
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.base import Event, Message
from pml_common.contracts.curation import SavedCapability
from pml_common.contracts.direct_call import CallEnded
from pml_common.contracts.dns import ChangedRecord, QueryRecords, RecordPage
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import (
    CallTool,
    DecidedThrough,
    ExecutionRequested,
    ToolOutcome,
)
from pml_common.contracts.registry import Discover, DiscoveryPage
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.errors import Retryable
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.domain.api.approval_form import ApprovalForm, FormAnswer, GivenAnswer
from pml_gateway.domain.api.client_session import ClientSession
from pml_gateway.domain.api.curation import CurateNames, SaveProgram
from pml_gateway.domain.api.elicitation import ElicitationSetting
from pml_gateway.domain.api.list_cursors import After
from pml_gateway.domain.api.offered import Offered
from pml_gateway.domain.api.records import MergeSources
from pml_gateway.domain.api.task_results import GetTaskResult
from pml_gateway.domain.api.views import ApprovalPage, WorkflowPage
from pml_gateway.domain.servers.circuit import CircuitState
from pml_gateway.domain.servers.offers import Offers
from pml_gateway.domain.tool_calls.ledger import Entry
from pml_gateway.domain.workflow.result_cache import CachedResult, ResultKey
from pml_gateway.domain.workflow.workflow import Step, Workflow

ServerState = Literal["connecting", "ready", "failed"]
Transport = Literal["stdio", "http", "sse"]


@dataclass(frozen=True)
class ServerStatus:
    """State of the connection to one MCP server. `tools` is the number of tools last listed,
    `warnings` say which of them are not used and why; once `announced`, the tool catalog has them.
    `circuit_fault` says why calls are refused while the `circuit` is not closed; `timeout_s` is the
    configured time limit of a call. `title` is its name in the configuration, where that is
    another; `excluded` counts the tools that the configuration leaves out. Once connected,
    `protocol` is the agreed version of MCP, and `version` the server's own. A server that
    `needs_login` is not tried again before one. `declares` has its capabilities, as
    `tools`.
    """

    state: ServerState
    error: str | None
    tools: int
    since: datetime
    hints_trusted: bool = True
    warnings: tuple[str, ...] = ()
    announced: bool = True
    circuit: CircuitState = "closed"
    circuit_fault: str | None = None
    calls_under_way: int = 0
    calls_queued: int = 0
    timeout_s: float | None = None
    title: str | None = None
    excluded: int = 0
    transport: Transport | None = None
    protocol: str | None = None
    version: str | None = None
    needs_login: bool = False
    declares: tuple[str, ...] = ()


@dataclass(frozen=True)
class Caller:
    """Authenticated caller: `scope`, `principal` and role come from the credential, never from the
    request. An admin may change any record of the scope."""

    scope: Scope
    principal: str
    is_admin: bool = False


@dataclass(frozen=True)
class CallOrigin:
    """The caller of a tool; a repetition of the call has the same `key`. `side` is given where the
    caller waits for the call in this process."""

    caller: Caller
    key: UUID
    side: "CallerSide | None" = None


class ToolCaller(Protocol):
    """Calls tools of MCP servers."""

    async def call(
        self, tool_id: str, args: JsonObject, timeout_s: float, origin: CallOrigin
    ) -> ToolOutcome:
        """Call `server:tool`; returns within `timeout_s` and raises nothing.

        `unknown`: the call was sent, got no usable answer, and may not be repeated or lost its
        connection. `tool_error`: the tool or its server returned an error. A
        `domain.tool_calls.repeatable.NotSent`: nothing was called.
        """
        ...


class ToolServers(ToolCaller, Protocol):
    """Connected MCP servers."""

    def list_tools(self) -> Mapping[str, tuple[ToolDefinition, ...]]:
        """Return each server's tools as it last listed them."""
        ...

    def status(self) -> Mapping[str, ServerStatus]:
        """Return the present status of each server."""
        ...

    async def reach(self, server: str, timeout_s: float) -> None:
        """Wait until a server can be called, `timeout_s` at most. An absent server is tried at
        once; the wait ends when that fails and the server has been absent for long."""
        ...


@dataclass(frozen=True)
class Reloaded:
    """The configured servers after a reload, by how they differ from before; `faulty` are those
    whose entry has faults, by name."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    faulty: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


class ConfiguredServers(Protocol):
    """Servers of a configuration that can be read again."""

    @property
    def fault(self) -> str | None:
        """Why the configuration could not be read again; None where it is in force."""
        ...

    async def reload(self) -> Reloaded:
        """Read the configuration again, and connect and disconnect accordingly; servers whose entry
        is the same stay connected. Raises Conflict where it cannot be read: nothing changes."""
        ...


@dataclass(frozen=True)
class Login:
    """The outcome of a login at the authorization server of an MCP server, for its `url` alone:
    tokens, `expires_at` in seconds since the epoch, the registered client, and the metadata of the
    authorization server and of the MCP server, as they were answered."""

    url: str
    tokens: JsonObject = field(repr=False)
    client: JsonObject = field(repr=False)
    expires_at: float | None = None
    authorization_server: JsonObject | None = None
    resource: JsonObject | None = None


class Logins(Protocol):
    """Stores the login at each MCP server, by its name."""

    async def find(self, server: str) -> Login | None:
        """Return the login at a server; None where there is none that can be read."""
        ...

    async def keep(self, server: str, login: Login) -> None:
        """Store a login in place of the former one. Raises OSError."""
        ...

    async def forget(self, server: str) -> None:
        """Delete the login at a server. Idempotent."""
        ...


class ServerRefused(Exception):
    """An MCP server answered a request with an error."""

    def __init__(self, code: int, message: str, data: JsonValue = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


OfferMethod = Literal["resources/read", "prompts/get", "completion/complete"]


class OfferingServers(Protocol):
    """Connected MCP servers, and what they offer beside tools."""

    def offers(self) -> Mapping[str, Offers]:
        """Return what each server last listed."""
        ...

    def shown(self, tool_id: str) -> JsonObject:
        """Return what a server shows with a tool beside its definition: `_meta`, icons and
        `execution`, as MCP lists them."""
        ...

    async def ask(
        self,
        server: str,
        method: OfferMethod,
        params: JsonObject,
        capabilities: JsonObject,
        timeout_s: float,
    ) -> JsonObject:
        """Return a server's result for one of the methods, as MCP has it: also a request for input,
        of the kinds that the `capabilities` of the caller's client have. Raises ServerRefused, and
        Unavailable where the server does not answer in time."""
        ...


class OfferedToCallers(Protocol):
    """Resources and prompts of MCP servers, as a scope's policy allows them. Requests are given by
    the name or URI that our clients see, with the `more` of their parameters and what the client
    can be asked for; they raise NotFound, Conflict, Forbidden, and as OfferingServers does."""

    def offered(self, scope: Scope) -> Offered:
        """Return what is offered to a scope."""
        ...

    def shown(self, tool_id: str) -> JsonObject:
        """Return what is shown with a tool, as OfferingServers does."""
        ...

    async def read(
        self, scope: Scope, uri: str, more: JsonObject, capabilities: JsonObject
    ) -> JsonObject:
        """Return the result of `resources/read`."""
        ...

    async def prompt(
        self, scope: Scope, name: str, more: JsonObject, capabilities: JsonObject
    ) -> JsonObject:
        """Return the result of `prompts/get`."""
        ...

    async def complete(self, scope: Scope, ref: JsonObject, more: JsonObject) -> JsonObject:
        """Return the result of `completion/complete` for an argument of what `ref` names."""
        ...


class KnownTools(ToolServers, Protocol):
    """Connected MCP servers, with an index of their tools by id."""

    def find(self, tool_id: str) -> ToolDefinition | None:
        """Return a tool as its server lists it now."""
        ...

    def hash_of(self, tool_id: str) -> str | None:
        """Return the hash of a tool's definition as its server lists it now."""
        ...

    def withheld(self, tool: str) -> str | None:
        """Explain why a tool with this id or listed name is not offered; None for others."""
        ...


class AcceptedTools(Protocol):
    """Stores the accepted definition of each tool, as its server declares it. Every method may
    raise StorageUnavailable."""

    async def meet(
        self, scope: Scope, tools: Sequence[ToolDefinition], at: datetime
    ) -> Sequence[ToolDefinition]:
        """Accept those definitions whose tool has none yet, and return the accepted ones of all
        these tools."""
        ...

    async def accept(
        self, scope: Scope, tools: Sequence[ToolDefinition], by: str, at: datetime
    ) -> None:
        """Make these the accepted definitions of their tools. A repetition changes nothing but
        who accepted them and when."""
        ...


class ElicitationSettings(Protocol):
    """Stores whether forms that are answered over a credential's connection decide approvals. Every
    method may raise StorageUnavailable."""

    async def of(self, scope: Scope, principal: str) -> ElicitationSetting:
        """Return the present setting of the principal's credential."""
        ...

    async def set(self, scope: Scope, setting: ElicitationSetting) -> None:
        """Make this the present setting; former ones stay on record. A repetition changes
        nothing."""
        ...


class AllowedTools(Protocol):
    """Tools that callers may list."""

    async def list_tools(self, scope: Scope) -> Sequence[ToolDefinition]:
        """Return the tools that the scope's policy does not deny. Raises Unavailable."""
        ...

    async def until_listed(self, tool: str, within_s: float) -> bool:
        """Wait, `within_s` at most, for servers that a tool of this name may belong to and that
        have not listed their tools yet; return whether there are such servers."""
        ...

    def withheld(self, tool: str) -> str | None:
        """Explain why a tool with this id or listed name is not offered; None for others."""
        ...

    def absent_server_of(self, tool: str) -> str | None:
        """Explain why the configured server that a tool of this name may belong to has listed no
        tools; None where there is no such server."""
        ...

    async def named_capabilities(self, caller: Caller, cursor: str | None) -> RecordPage:
        """Return a page of the named capabilities that the policy lets the caller call, by name,
        with the schemas of their arguments; `cursor` is the `next_cursor` of the page before.
        Raises Unavailable, and InvalidRequest for a cursor that is none."""
        ...

    async def is_capability(self, caller: Caller, name: str) -> bool:
        """Whether there is a capability of this name for the caller. Raises Conflict where it is
        refused, and Unavailable."""
        ...


class Callers(Protocol):
    """Identifies callers by their credentials."""

    async def identify(self, headers: Mapping[str, str]) -> Caller:
        """Return the caller that sent these headers. Raises Forbidden."""
        ...


class ClientSessions(Protocol):
    """Stores the sessions of MCP clients, for all replicas. Every method may raise
    BusUnavailable."""

    async def keep(self, session: ClientSession, ttl_s: float) -> None:
        """Store a session, for `ttl_s` seconds from now."""
        ...

    async def find(self, caller: str, key: str) -> ClientSession | None:
        """Return a session by the keys of its caller and its own."""
        ...

    async def drop(self, session: ClientSession) -> None:
        """Delete a session, if it is stored."""
        ...

    async def count(self, caller: str) -> int:
        """Count a caller's sessions."""
        ...


class Replicas(Protocol):
    """The other gateways, as far as they hear. Every method may raise BusUnavailable."""

    async def pass_on(self, session: ClientSession, message: JsonObject) -> None:
        """Tell all what a client said: an answer, or a cancellation, of a call that is not
        here."""
        ...

    async def tell_awaited(
        self, scope: Scope, workflow_id: UUID, what: Literal["joined", "leaving", "staying"]
    ) -> None:
        """Tell all that a caller here joins a workflow, leaves it, or stays (`WorkflowAwaited`)."""
        ...

    async def tell_ended(self, session: ClientSession) -> None:
        """Tell all that a client has ended its session."""
        ...


class Approvers(Callers, Protocol):
    """Identifies callers and approvers by their credentials."""

    async def approver(self, headers: Mapping[str, str]) -> Caller:
        """Return the approver, if these headers prove their key. Raises Unauthorized."""
        ...


class Asker(Protocol):
    """Asks the user of a call's client to decide an approval. `given` is the answer that the call
    carries to a form that an earlier one returned; a decision that is made so came `through`
    this way."""

    given: GivenAnswer | None
    through: DecidedThrough

    async def ask(self, form: ApprovalForm) -> FormAnswer | None:
        """Show the form and return the user's answer; None where the client gives none. Raises
        InputNeeded where the call has to be answered with the form."""
        ...


class InputNeeded(Exception):
    """The call is to be answered with this form, and made again with the user's answer."""

    def __init__(self, form: ApprovalForm) -> None:
        super().__init__(f"workflow {form.asked.workflow_id} needs an answer to a form")
        self.form = form


async def _is_never_gone() -> bool:
    return False


Report = Callable[[int, int, str], Awaitable[None]]
"""Tells a caller of progress: the calls that a run has reached, their number, and a sentence."""


@dataclass(frozen=True)
class ToolProgress:
    """Progress of a tool's call, in numbers of its server."""

    tool_id: str
    progress: float
    total: float | None
    message: str | None


class ClientRefused(Exception):
    """The MCP client of a call gave no result: it erred, cannot answer, is gone, or did not answer
    in time. `code` is JSON-RPC's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ClientSide(Protocol):
    """The MCP client that waits for the answer of a call."""

    @property
    def capabilities(self) -> JsonObject:
        """The capabilities that it declared."""
        ...

    @property
    def takes_requests(self) -> bool:
        """Whether it can be sent requests while it waits."""
        ...

    async def request(self, method: str, params: JsonObject, timeout_s: float) -> JsonObject:
        """Send the client an MCP request and return its result. Raises ClientRefused."""
        ...


@dataclass(frozen=True)
class ServerInputs:
    """Answers that a call carries to what its tool's server asked for in answer to an earlier one,
    as MCP has them, and that server's state."""

    responses: JsonObject | None = None
    state: str | None = None


@dataclass(frozen=True)
class CallerSide:
    """The caller's end of a call. An execution is answered `running` by `answer_by` (event loop
    time), if it is given, at the latest. `is_gone` tells whether the answer would reach nobody, and
    `withdrawn`, where the call is cancelled, whether its caller wants the workflow stopped. Through
    `client`, if it is an MCP client that said what it can do, it is asked while it waits. `asker`
    asks its user to decide an approval, where the client can do that. `relay` takes the progress of
    tools that are called meanwhile. `as_task`: the client polls what is not done by then. With
    `inputs`, a call of a tool can be answered with what its server asks for, to be made again with
    the answers; else `client` is asked meanwhile."""

    answer_by: float | None = None
    report: Report | None = None
    relay: Callable[[ToolProgress], None] | None = None
    inputs: ServerInputs | None = None
    is_gone: Callable[[], Awaitable[bool]] = _is_never_gone
    withdrawn: Callable[[], bool] = lambda: False
    client: ClientSide | None = None
    as_task: bool = False
    asker: Asker | None = None


HERE: Final = CallerSide()
"""A caller who is there until the answer."""


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
    """A workflow, the response for its state, and the form for the approval that it waits for,
    where the caller's user may decide that."""

    workflow: Workflow
    response: ExecuteResponse
    form: ApprovalForm | None


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
        through: DecidedThrough,
    ) -> None:
        """Take the answer to the form that is open, by its key; others are ignored. Raises
        InvalidRequest."""
        ...

    async def cancel(self, caller: Caller, workflow_id: UUID) -> None:
        """Cancel a task; one that has ended stays as it is."""
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
    """The registry does not tell whether a program can have the name `name`."""

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
        it; return the name that was given now, None where the registry does not answer."""
        ...


@dataclass(frozen=True)
class Outgoing:
    """A message of the outbox, with the `traceparent` of the trace that it belongs to."""

    message: Message
    traceparent: str | None = None


@dataclass(frozen=True)
class Taken:
    """A step caused by a message: its effects and the workflow after it; no workflow where the
    message was handled before."""

    effects: Sequence[Message]
    workflow: Workflow | None


class Analyses(Protocol):
    """Analyses programs before their requests are stored."""

    async def of(
        self, requested: ExecutionRequested
    ) -> ExecutionAnalyzed | AnalysisRejected | None:
        """Return the analysis of exactly this request's program; None where the analyzer gives
        none in time."""
        ...


class WorkflowStore(Protocol):
    """Stores workflows and their approvals. Every method may raise StorageUnavailable."""

    async def accept(
        self, workflow: Workflow, effects: Sequence[Message], join_at: datetime | None = None
    ) -> Workflow | None:
        """Store a new workflow as it is after its first step, and that step's messages in the
        outbox, and return None; where its key is taken, store nothing and return the workflow that
        has it. So also, with `join_at`, where the same call has a workflow that may be joined at
        this time: of calls that come together, to any process, one is stored."""
        ...

    async def add(self, workflows: Sequence[Workflow]) -> Set[tuple[Scope, UUID]]:
        """Store workflows that were accepted elsewhere; return the keys of those that are new."""
        ...

    async def step_once(
        self, cause: Event, consumer: str, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Taken | None:
        """Take the step that a message causes, once for all its deliveries. None: there is no such
        workflow."""
        ...

    async def change(
        self, scope: Scope, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Step | None:
        """Take a step that no message causes: store the workflow, and its effects in the outbox.
        None: there is no such workflow."""
        ...

    async def end(self, runs: Sequence[RunFinished]) -> Sequence[Workflow]:
        """End the workflows of these runs, together, and return them; those that there are not are
        missing. A repetition changes nothing."""
        ...

    def latest(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        """Return a running workflow as this process stored it last, if it is at hand."""
        ...

    async def get(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        """Return a workflow in its current state."""
        ...

    async def joinable(self, scope: Scope, call_digest: str) -> Workflow | None:
        """Return the latest workflow of a call that waits for a person, or was approved and is not
        delivered."""
        ...

    async def deliver(self, scope: Scope, workflow_id: UUID) -> None:
        """Note that a workflow's caller has got its end: no call joins it any more."""
        ...

    async def page(
        self, scope: Scope, limit: int, offset: int, after: After | None = None
    ) -> WorkflowPage:
        """List workflows, newest first."""
        ...

    async def waiting(
        self, scope: Scope, limit: int, offset: int, after: After | None = None
    ) -> ApprovalPage:
        """List open approvals, the first to expire first."""
        ...

    async def forget(self, ended_before: datetime, limit: int) -> int:
        """Delete workflows of all scopes that ended before this time, the earliest first, and
        return how many. Those with an approval stay, as the record of who allowed what, and those
        whose result is cached."""
        ...

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Scope, UUID]]:
        """List workflows of all scopes whose next step is overdue."""
        ...


class LiveWorkflowStore(WorkflowStore, Protocol):
    """A store that knows what the bus has of a workflow before it is stored."""

    async def accept_run(self, workflow: Workflow, accepted: WorkflowAccepted) -> Workflow | None:
        """Accept a workflow that runs at once by publishing this, and return None: it is stored
        later. Where its key is taken, return the workflow that has it. Raises BusError, after which
        it may be accepted nevertheless."""
        ...

    async def add_accepted(self, accepted: Sequence[WorkflowAccepted]) -> None:
        """Store accepted workflows; a repetition changes nothing."""
        ...

    def begin(self, workflow: Workflow) -> None:
        """Remember a direct call that runs until it is stored."""
        ...

    async def end_calls(self, ended: Sequence[CallEnded]) -> Sequence[Workflow]:
        """Store workflows of direct calls as they ended, and return them; a repetition changes
        nothing."""
        ...

    async def settle(self, scope: Scope, workflow_id: UUID) -> None:
        """Store now what is known of a workflow."""
        ...

    async def is_held(self, scope: Scope, workflow_id: UUID) -> bool:
        """Whether the bus holds a message on which the workflow's run begins or goes on: its
        executor has not acknowledged it. Raises BusError."""
        ...

    def hear(self, before: Workflow, run: RunFinished) -> Workflow:
        """Remember the end of a run until it is stored, and return the workflow after it."""
        ...


class Outbox(Protocol):
    """Stores messages until they are published. Every method may raise StorageUnavailable."""

    async def claim(self, limit: int) -> Sequence[Outgoing]:
        """Return overdue messages of all scopes, and for a while return them to no other caller.
        Unreadable messages are set aside."""
        ...

    async def drop(self, message_ids: Sequence[UUID]) -> None:
        """Delete published messages."""
        ...


class Relay(Protocol):
    """Publishes messages of the outbox."""

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        """Publish messages that were just stored; those that fail now are published later."""
        ...


class Waiter(Protocol):
    """One caller's wait for a workflow."""

    @property
    def over(self) -> bool:
        """Whether no more notifications will come."""
        ...

    async def wait(self, timeout_s: float) -> Workflow | None:
        """Wait for a notification; return the workflow's state, or None where the caller has to
        read it from the store."""
        ...


class Notifier(Protocol):
    """Notifies callers that wait for workflows in this process."""

    def subscribe(self, scope: Scope, workflow_id: UUID) -> AbstractContextManager[Waiter]:
        """Receive notifications when a workflow ends or needs approval, until the block exits."""
        ...

    def is_awaited(self, scope: Scope, workflow_id: str) -> bool:
        """Whether a caller waits for this workflow."""
        ...

    def notify(self, workflow: Workflow) -> None:
        """Wake the callers that wait for a workflow, with its present state."""
        ...


class CallLedger(Protocol):
    """Stores the state of tool calls by idempotency key. Every method may raise
    StorageUnavailable."""

    async def begin(self, call: CallTool, entry: Entry) -> Entry | None:
        """Store that a call begins and return None; where its key is taken, and not by what the
        entry replaces, store nothing and return the stored entry."""
        ...

    async def find(self, call: CallTool) -> Entry | None:
        """Return the entry under a call's key."""
        ...

    async def take_over(self, call: CallTool, entry: Entry, previous: UUID) -> bool:
        """Store that a call begun by `previous` begins anew; False: another gateway took it
        over."""
        ...

    async def settle(self, call: CallTool, entry: Entry, outcome: ToolOutcome) -> ToolOutcome:
        """Store the outcome of a call, begun or not, unless one is stored that the entry does not
        replace; return the call's stored one, or this one where the key is another call's."""
        ...

    async def add(self, calls: Sequence[tuple[CallTool, Entry]]) -> None:
        """Store calls with their outcomes, in one order; those with an entry stay as they are."""
        ...

    async def results(self, scope: Scope, keys: Sequence[UUID]) -> Mapping[UUID, JsonValue]:
        """Return the results of the calls that succeeded, by idempotency key."""
        ...

    async def lives(self, owner: UUID) -> bool:
        """Whether the gateway process with this id is alive."""
        ...

    async def forget(self, older_than: datetime) -> None:
        """Delete calls that no grant covers any more."""
        ...


class KeptResults(Protocol):
    """Stores which workflows' results are cached. May raise StorageUnavailable, BusError."""

    async def find(self, key: ResultKey) -> CachedResult | None:
        """Return the entry under a key, which may have expired."""
        ...

    async def keep(self, key: ResultKey, kept: CachedResult) -> None:
        """Store an entry, replacing that of the same key."""
        ...


class LastingResults(KeptResults, Protocol):
    """Cached results that stay until they are deleted. May raise StorageUnavailable."""

    async def drop(self, scope: Scope, capability_id: UUID, but_revision: int) -> None:
        """Delete the results of a capability, except those of one revision of its settings."""
        ...

    async def forget(self, now: datetime) -> None:
        """Delete expired results."""
        ...
