"""Callers: who they are, what they may list, and their sessions."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from pml_common.contracts.dns import RecordPage
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.domain.api.client_session import ClientSession
from pml_gateway.domain.api.elicitation import ElicitationSetting
from pml_gateway.ports.caller_side import CallerSide


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

    def bare_servers(self) -> Set[str]:
        """Return the servers whose tools are listed under their own names."""
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
