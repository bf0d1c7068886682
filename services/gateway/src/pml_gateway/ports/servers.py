"""MCP servers: their connections, configuration and logins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.domain.servers.circuit import CircuitState
from pml_gateway.ports.callers import CallOrigin

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
    `tools`. Unless `prefixed`, its tools are listed under their own names.
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
    prefixed: bool = True


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
