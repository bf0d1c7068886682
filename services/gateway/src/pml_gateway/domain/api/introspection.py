"""Requests about PML itself, for the tools `meta:*` and `learn:feedback`, and their answers."""

from collections.abc import Iterable
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field, StringConstraints

from pml_common.contracts.base import Contract
from pml_common.contracts.decision import Policy, Verdict
from pml_common.contracts.learner import (
    Feedback,
    GiveFeedback,
    ListFeedback,
    ListToolUsage,
    ToolUsage,
)
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_common.contracts.uses import EvidenceState
from pml_gateway.domain.api.records import Text
from pml_gateway.domain.api.request import MAX_OFFSET, Request
from pml_gateway.domain.api.speculation_threshold import SpeculationThreshold

_ServerName = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class AskTools(Request):
    """A choice of tools."""

    server: Annotated[_ServerName | None, Field(description="Those of one server alone.")] = None
    text: Annotated[
        Text | None, Field(description="Those whose id or description has this text.")
    ] = None
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    offset: Annotated[int, Field(ge=0, lt=MAX_OFFSET)] = 0


class ToolSummary(Contract):
    """A tool that programs may call as `mcp.call("<id>", …)`; `verdict` is the policy's on a call
    of unknown arguments."""

    id: str
    title: str | None
    description: str
    read_only: bool | None
    verdict: Verdict


class ToolSummaries(Contract):
    """One page of tools, by id, and their number."""

    tools: tuple[ToolSummary, ...]
    total: int


class AskServers(Request):
    """Nothing to choose."""


class ServerSummary(Contract):
    """A server of tools and the state of its connection."""

    name: str
    state: Literal["connecting", "ready", "failed"]
    error: str | None
    tools: int
    since: AwareDatetime
    circuit: Literal["closed", "open", "half_open"]


class ServerSummaries(Contract):
    """All servers, by name."""

    servers: tuple[ServerSummary, ...]


class AskStats(Request):
    """A choice of calls."""

    server: Annotated[
        _ServerName | None,
        Field(description="Calls of one server; `pml-capabilities`: of named capabilities."),
    ] = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    offset: Annotated[int, Field(ge=0, lt=MAX_OFFSET)] = 0

    def usage(self, scope: Scope) -> ListToolUsage:
        """Build the query for the calls."""
        return ListToolUsage(
            scope=scope, server_id=self.server, limit=self.limit, offset=self.offset
        )

    def feedback(self, scope: Scope) -> ListFeedback:
        """Build the query for the opinions."""
        return ListFeedback(scope=scope, limit=self.limit, offset=self.offset)


class Stats(Contract):
    """Calls of tools by programs, and of named capabilities: one page of them, how many there are
    and all calls together; how useful runs of capabilities were found; whether discovery ranks by
    use, and by how much that is better; and the threshold of speculation."""

    usage: tuple[ToolUsage, ...]
    total: int
    calls: int
    feedback: tuple[Feedback, ...]
    ranking: EvidenceState
    speculation: SpeculationThreshold


class JudgeRun(Request):
    """An opinion of a run."""

    useful: Annotated[bool, Field(description="Whether the result served its purpose.")]
    comment: Annotated[
        Annotated[str, StringConstraints(pattern=r"^[^\x00]{0,2000}$")],
        Field(description="Why, in a sentence."),
    ] = ""

    def query(self, scope: Scope, principal: str, workflow_id: UUID) -> GiveFeedback:
        """Build the query to the learner."""
        return GiveFeedback(
            scope=scope,
            principal=principal,
            workflow_id=workflow_id,
            useful=self.useful,
            comment=self.comment,
        )


class JudgeWorkflow(JudgeRun):
    """An opinion of the run of a workflow."""

    workflow_id: Annotated[UUID, Field(description="The workflow that ran the capability.")]

    def asked(self, scope: Scope, principal: str) -> GiveFeedback:
        """Build the query to the learner."""
        return self.query(scope, principal, self.workflow_id)


def tool_summaries(
    tools: Iterable[ToolDefinition], policy: Policy, asked: AskTools
) -> ToolSummaries:
    """Select a page of the tools that the policy does not deny."""
    wanted = (asked.text or "").casefold()
    found = [
        ToolSummary(
            id=tool.tool_id,
            title=tool.title,
            description=tool.description,
            read_only=tool.annotations.read_only,
            verdict=verdict,
        )
        for tool in sorted(tools, key=lambda each: each.tool_id)
        if asked.server in (None, tool.server)
        and wanted in f"{tool.tool_id} {tool.description}".casefold()
        and (verdict := policy.verdict_on(tool)[0]) != "deny"
    ]
    page = found[asked.offset : asked.offset + asked.limit]
    return ToolSummaries(tools=tuple(page), total=len(found))
