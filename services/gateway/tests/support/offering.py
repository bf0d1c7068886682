"""MCP servers that offer resources and prompts, without servers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.log_levels import LogLevel
from pml_gateway.domain.servers.offers import Offers
from pml_gateway.ports import Caller, OfferingServers, OfferMethod


@dataclass
class StubOffers(OfferingServers):
    """Returns what it is given, and records what is asked; an exception is raised."""

    listed: Mapping[str, Offers] = field(default_factory=dict[str, Offers])
    answer: JsonObject | Exception = field(default_factory=dict[str, JsonValue])
    tools: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    asked: list[tuple[str, OfferMethod, JsonObject, JsonObject]] = field(
        default_factory=list[tuple[str, OfferMethod, JsonObject, JsonObject]]
    )

    levels: list[LogLevel] = field(default_factory=list[LogLevel])

    def offers(self) -> Mapping[str, Offers]:
        return self.listed

    def shown(self, tool_id: str) -> JsonObject:
        return self.tools.get(tool_id, {})

    def want_logs(self, level: LogLevel) -> None:
        self.levels.append(level)

    async def ask(
        self,
        server: str,
        method: OfferMethod,
        params: JsonObject,
        capabilities: JsonObject,
        timeout_s: float,
        caller: Caller | None = None,
    ) -> JsonObject:
        self.asked.append((server, method, params, capabilities))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer
