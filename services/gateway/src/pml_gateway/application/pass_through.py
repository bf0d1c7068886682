"""Resources and prompts of MCP servers, for callers, under the policy of their scope."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue
from typing_extensions import override

from pml_common.contracts.decision import Policy
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.errors import Forbidden
from pml_gateway.domain.api.log_levels import LogLevel
from pml_gateway.domain.api.offered import Fits, Offered, may_read, permitted
from pml_gateway.ports import Caller, OfferedToCallers, OfferingServers

_TEMPLATE: Final = "ref/resource"


@dataclass(frozen=True)
class PassThrough(OfferedToCallers):
    """Hands requests to the server that offers what they name."""

    servers: OfferingServers
    policy_of: Callable[[Scope], Policy]
    fits: Fits
    timeout_s: float

    @override
    def offered(self, scope: Scope) -> Offered:
        return Offered(permitted(self.servers.offers(), self.policy_of(scope)), self.fits)

    @override
    def shown(self, tool_id: str) -> JsonObject:
        return self.servers.shown(tool_id)

    @override
    def want_logs(self, level: LogLevel) -> None:
        self.servers.want_logs(level)

    @override
    async def read(
        self, caller: Caller, uri: str, more: JsonObject, capabilities: JsonObject
    ) -> JsonObject:
        server, there = self.offered(caller.scope).resource(uri)
        if not may_read(self.policy_of(caller.scope), server, f"resources/{there}"):
            raise Forbidden(f"the policy does not allow reading {uri}")
        answer = await self.servers.ask(
            server, "resources/read", {**more, "uri": there}, capabilities, self.timeout_s, caller
        )
        contents = answer.get("contents")
        if there == uri or not isinstance(contents, list):
            return answer
        return {**answer, "contents": [_renamed(each, there, uri) for each in contents]}

    @override
    async def prompt(
        self, caller: Caller, name: str, more: JsonObject, capabilities: JsonObject
    ) -> JsonObject:
        server, there = self.offered(caller.scope).prompt(name)
        return await self.servers.ask(
            server, "prompts/get", {**more, "name": there}, capabilities, self.timeout_s, caller
        )

    @override
    async def complete(self, caller: Caller, ref: JsonObject, more: JsonObject) -> JsonObject:
        offered = self.offered(caller.scope)
        if ref.get("type") == _TEMPLATE:
            server, there = offered.template(str(ref.get("uri")))
            named: JsonObject = {**ref, "uri": there}
        else:
            server, there = offered.prompt(str(ref.get("name")))
            named = {**ref, "name": there}
        return await self.servers.ask(
            server, "completion/complete", {**more, "ref": named}, {}, self.timeout_s, caller
        )


def _renamed(contents: JsonValue, there: str, here: str) -> JsonValue:
    """Return contents under the URI that the client read."""
    if isinstance(contents, dict) and contents.get("uri") == there:
        return {**contents, "uri": here}
    return contents
