"""The tools `meta:*`: what PML knows of itself, for programs and agents."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from pml_common.contracts import catalog
from pml_common.contracts.uses import ShowEvidence
from pml_gateway.adapters.std.tools import READS, Backing, StdTool
from pml_gateway.domain.api.introspection import (
    AskServers,
    AskStats,
    AskTools,
    ServerSummaries,
    ServerSummary,
    Stats,
    ToolSummaries,
    tool_summaries,
)
from pml_gateway.ports import CallOrigin


async def _tools(
    backing: Backing, asked: AskTools, origin: CallOrigin, timeout_s: float
) -> ToolSummaries:
    listed = (tool for tools in backing.tools().list_tools().values() for tool in tools)
    return tool_summaries(listed, backing.policy_of(origin.caller.scope), asked)


async def _servers(
    backing: Backing, asked: AskServers, origin: CallOrigin, timeout_s: float
) -> ServerSummaries:
    found = sorted(backing.tools().status().items())
    return ServerSummaries(
        servers=tuple(
            ServerSummary(
                name=name,
                state=status.state,
                error=status.error,
                tools=status.tools,
                since=status.since,
                circuit=status.circuit,
            )
            for name, status in found
        )
    )


async def _stats(backing: Backing, asked: AskStats, origin: CallOrigin, timeout_s: float) -> Stats:
    ask, scope = backing.query_client.request, origin.caller.scope
    usage, judged, ranking, speculation = await asyncio.gather(
        ask(catalog.LIST_TOOL_USAGE, asked.usage(scope), timeout=timeout_s),
        ask(catalog.LIST_FEEDBACK, asked.feedback(scope), timeout=timeout_s),
        ask(catalog.SHOW_EVIDENCE, ShowEvidence(scope=scope), timeout=timeout_s),
        backing.speculations.threshold(scope),
    )
    return Stats(
        usage=usage.usage,
        total=usage.total,
        calls=usage.calls,
        feedback=judged.feedback,
        ranking=ranking,
        speculation=speculation,
    )


TOOLS: Final = StdTool(
    "tools",
    "List tools",
    "List the tools that programs may call, by id, each with the policy's verdict; those of one "
    "server, or with a text in id or description. Schemas and signatures: pml_discover.",
    READS,
    AskTools,
    _tools,
)
SERVERS: Final = StdTool(
    "servers",
    "List servers",
    "List the connected MCP servers with the state of their connections.",
    READS,
    AskServers,
    _servers,
)
STATS: Final = StdTool(
    "stats",
    "Show use",
    "Show how often tools and named capabilities (server `pml-capabilities`) were called, with "
    "success and mean duration, how useful runs were found, and the score from which an intent "
    "with a context runs a capability.",
    READS,
    AskStats,
    _stats,
)

META: Final[Sequence[StdTool[Any]]] = (TOOLS, SERVERS, STATS)
"""All of them."""
