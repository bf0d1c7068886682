"""What handlers need from the world outside; long on purpose: every port in one place."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from pydantic import JsonValue

from pml_common.contracts.base import Event, Message
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.registry import Discover, DiscoveryPage
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.domain.api.views import ApprovalPage, WorkflowPage
from pml_gateway.domain.tool_calls.ledger import Entry
from pml_gateway.domain.workflow.result_cache import CachedResult, ResultKey
from pml_gateway.domain.workflow.workflow import Step, Workflow

ServerState = Literal["connecting", "ready", "failed"]


@dataclass(frozen=True)
class ServerStatus:
    """How the connection to one MCP server stands; `tools` counts the last listing, `warnings` say
    what of it is not used. Once `announced`, programs that name its tools find them."""

    state: ServerState
    error: str | None
    tools: int
    since: datetime
    hints_trusted: bool = True
    warnings: tuple[str, ...] = ()
    announced: bool = True


class ToolCaller(Protocol):
    """What makes tool calls on MCP servers."""

    async def call(self, tool_id: str, args: JsonObject, timeout_s: float) -> ToolOutcome:
        """Call `server:tool`; answers within `timeout_s` and raises nothing.

        `unknown`: the call was sent, got no usable answer, and may not be repeated or lost its
        connection. `tool_error`: the tool or its server said no. A `domain.repeatable.NotSent`:
        nothing was called.
        """
        ...


class ToolServers(ToolCaller, Protocol):
    """The connected MCP servers."""

    def list_tools(self) -> Mapping[str, tuple[ToolDefinition, ...]]:
        """Each server's tools as it last listed them."""
        ...

    def status(self) -> Mapping[str, ServerStatus]:
        """How each server stands now."""
        ...

    async def reach(self, server: str, timeout_s: float) -> None:
        """Wait, `timeout_s` at most, until a server can be called; one that is away is tried at
        once, and not waited for once that failed and it was away for long."""
        ...


class AgentApi(Protocol):
    """What agents may ask, whichever protocol they speak; the caller is known already.

    Raises the errors of `domain.errors`.
    """

    async def execute(
        self, scope: Scope, principal: str, request: ExecuteRequest
    ) -> ExecuteResponse:
        """Run a program or a capability and wait for its end, its approval, or its time."""
        ...

    async def discover(self, query: Discover) -> DiscoveryPage:
        """Rank tools and capabilities by how well they serve an intent."""
        ...

    async def call_tool(
        self, scope: Scope, principal: str, tool_id: str, args: JsonObject, timeout_s: float
    ) -> ToolOutcome | ExecuteResponse:
        """Call one real tool: at once where the policy allows it, as a program that waits for
        approval where it asks, never where it denies (`refused`)."""
        ...


@dataclass(frozen=True)
class Caller:
    """Who asks: `scope` and `principal` come from the credential, never from the request."""

    scope: Scope
    principal: str


class Callers(Protocol):
    """What tells callers by their credentials."""

    async def identify(self, headers: Mapping[str, str]) -> Caller:
        """The caller that sent these headers. Raises Forbidden."""
        ...


class Approvers(Callers, Protocol):
    """What tells callers, and who may decide."""

    async def approver(self, headers: Mapping[str, str]) -> Caller:
        """The person who decides, if these headers show their key. Raises Unauthorized."""
        ...


class AllowedTools(Protocol):
    """What tells which real tools there are for whom."""

    async def list_tools(self, scope: Scope) -> Sequence[ToolDefinition]:
        """The scope's tools, without those its policy denies. Raises Unavailable."""
        ...

    async def until_listed(self, tool: str, within_s: float) -> bool:
        """Wait, `within_s` at most, for servers that a tool of this name may belong to and that
        told no tools yet; whether there are such servers."""
        ...


class KnownTools(ToolServers, Protocol):
    """The connected servers, their tools at hand by id."""

    def find(self, tool_id: str) -> ToolDefinition | None:
        """A tool by its id, as its server lists it now."""
        ...

    def hash_of(self, tool_id: str) -> str | None:
        """The hash of a tool's definition, as its server lists it now."""
        ...


def never_listed(tools: ToolServers, tool_id: str) -> tuple[str, ServerStatus] | None:
    """The server of this tool where it has told no tools since this process began, because it is
    not connected."""
    name = tool_id.partition(":")[0]
    server = tools.status().get(name)
    if server is None or server.state == "ready" or server.tools:
        return None
    return name, server


class CapabilityNames(Protocol):
    """What capabilities are called."""

    async def name_of(self, scope: Scope, capability_id: UUID) -> str | None:
        """Its name now; None when nobody tells in time."""
        ...


@dataclass(frozen=True)
class Outgoing:
    """A message that a stored change calls for; `traceparent` is what it is part of."""

    message: Message
    traceparent: str | None = None


@dataclass(frozen=True)
class Taken:
    """A step that was taken: what it stated, and how the workflow stands, unless the message was
    handled before."""

    effects: Sequence[Message]
    workflow: Workflow | None


class WorkflowStore(Protocol):
    """Workflows and their approvals. Everything here may raise StorageUnavailable."""

    async def accept(self, workflow: Workflow) -> Workflow | None:
        """Keep a new workflow and its request; None. If its key is taken: the one that has it."""
        ...

    async def step_once(
        self, cause: Event, consumer: str, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Taken | None:
        """Take the step that a message causes, once, whatever is redelivered. None: there is no
        such workflow."""
        ...

    async def change(
        self, scope: Scope, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Step | None:
        """Take a step that no message caused: keep its workflow, and in the outbox what follows.
        None: there is no such workflow."""
        ...

    async def get(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        """A workflow as it stands."""
        ...

    async def page(self, scope: Scope, limit: int, offset: int) -> WorkflowPage:
        """Workflows, newest first."""
        ...

    async def waiting(self, scope: Scope, limit: int, offset: int) -> ApprovalPage:
        """Approvals that nobody gave yet, the soonest to expire first."""
        ...

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Scope, UUID]]:
        """Workflows of all scopes that stand still: something should have happened by now."""
        ...


class Outbox(Protocol):
    """Messages that stored changes call for. May raise StorageUnavailable."""

    async def claim(self, limit: int) -> Sequence[Outgoing]:
        """Messages of all scopes that are late; nobody else gets them for a while. What cannot be
        read is set aside."""
        ...

    async def drop(self, message_ids: Sequence[UUID]) -> None:
        """Forget messages that were published."""
        ...


class CallLedger(Protocol):
    """What became of tool calls, by idempotency key. May raise StorageUnavailable."""

    async def begin(self, call: CallTool, entry: Entry) -> Entry | None:
        """Note that a call begins; None. If its key is there, note nothing and return that."""
        ...

    async def find(self, call: CallTool) -> Entry | None:
        """What is noted under a call's key."""
        ...

    async def take_over(self, call: CallTool, entry: Entry, previous: UUID) -> bool:
        """Note that a call begun by `previous` begins anew; False: somebody was faster."""
        ...

    async def settle(self, call: CallTool, entry: Entry, outcome: ToolOutcome) -> ToolOutcome:
        """Note how a call ended, begun or not, unless that is known; return what is known."""
        ...

    async def results(self, scope: Scope, keys: Sequence[UUID]) -> Mapping[UUID, JsonValue]:
        """The results of those calls that succeeded, by idempotency key."""
        ...

    async def lives(self, owner: UUID) -> bool:
        """Whether the gateway process with this id is alive."""
        ...

    async def forget(self, older_than: datetime) -> None:
        """Drop calls that no grant reaches any more."""
        ...


class KeptResults(Protocol):
    """Which workflows' results are told again. May raise StorageUnavailable, BusError."""

    async def find(self, key: ResultKey) -> CachedResult | None:
        """What is kept under a key, if anything; its time may be over."""
        ...

    async def keep(self, key: ResultKey, kept: CachedResult) -> None:
        """Keep this instead of what the key had."""
        ...


class LastingResults(KeptResults, Protocol):
    """Those that stay until somebody drops them. May raise StorageUnavailable."""

    async def drop(self, scope: Scope, capability_id: UUID, but_revision: int) -> None:
        """Drop those of a capability that nobody asks for any more: of all revisions but one."""
        ...

    async def forget(self, now: datetime) -> None:
        """Drop those whose time is over."""
        ...


class Waiter(Protocol):
    """What one waiting caller hears."""

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        ...

    async def wait(self, timeout_s: float) -> Workflow | None:
        """Wait for waiter: how the workflow stands if somebody here knows; else look yourself."""
        ...


class Notifier(Protocol):
    """Where callers wait for their workflows."""

    def subscribe(self, scope: Scope, workflow_id: UUID) -> AbstractContextManager[Waiter]:
        """Hear from the block's first line on when a workflow ends or needs approval."""
        ...

    def notify(self, workflow: Workflow) -> None:
        """Tell whoever waits here how a workflow stands."""
        ...


class Relay(Protocol):
    """What publishes messages of the outbox."""

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        """Publish now what was just stored; what cannot be is published later."""
        ...
