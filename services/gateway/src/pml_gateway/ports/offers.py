"""Offers of MCP servers beside tools, and who gets them."""

from collections.abc import Mapping
from typing import Literal, Protocol

from pydantic import JsonValue

from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.log_levels import LogLevel
from pml_gateway.domain.api.offered import Offered
from pml_gateway.domain.servers.offers import Offers
from pml_gateway.ports.callers import Caller


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

    def want_logs(self, level: LogLevel) -> None:
        """Have servers log messages of this level and above, from now on."""
        ...

    async def ask(
        self,
        server: str,
        method: OfferMethod,
        params: JsonObject,
        capabilities: JsonObject,
        timeout_s: float,
        caller: Caller | None = None,
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

    def want_logs(self, level: LogLevel) -> None:
        """Have servers log messages of this level and above, as OfferingServers does."""
        ...

    async def read(
        self, caller: Caller, uri: str, more: JsonObject, capabilities: JsonObject
    ) -> JsonObject:
        """Return the result of `resources/read`."""
        ...

    async def prompt(
        self, caller: Caller, name: str, more: JsonObject, capabilities: JsonObject
    ) -> JsonObject:
        """Return the result of `prompts/get`."""
        ...

    async def complete(self, caller: Caller, ref: JsonObject, more: JsonObject) -> JsonObject:
        """Return the result of `completion/complete` for an argument of what `ref` names."""
        ...
