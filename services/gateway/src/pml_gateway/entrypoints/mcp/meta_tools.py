"""The tools that PML itself offers over MCP: `pml_execute`, `pml_get_task_result`, `pml_cancel`,
`pml_discover`, `pml_list_capabilities` and `pml_curate_capabilities`.

To add one, write its arguments model, its handler and its MetaTool here, and list it in META_TOOLS.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Final, Generic, Literal, TypeVar
from uuid import UUID

from mcp_types import Tool, ToolAnnotations
from pydantic import AliasChoices, BaseModel, Field, StringConstraints, ValidationError

from pml_common.contracts.dns import Cursor, Glob, QueryRecords
from pml_common.contracts.fault_words import field_of
from pml_common.contracts.registry import Discover
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.api import ExecuteRequest, Intent
from pml_gateway.domain.api.curation import CurateNames
from pml_gateway.domain.api.errors import InvalidRequest, ResultUnavailable
from pml_gateway.domain.api.faults import in_words
from pml_gateway.domain.api.input_schema import input_schema
from pml_gateway.domain.api.mcp_results import (
    answer_result,
    cancel_result,
    execute_result,
    listed_capabilities,
)
from pml_gateway.domain.api.mcp_tasks import or_task
from pml_gateway.domain.api.next_step import RESULT_TOOL
from pml_gateway.domain.api.output_schemas import discover_output, execute_output
from pml_gateway.domain.api.request import MAX_OFFSET, Request
from pml_gateway.domain.api.task_results import GetTaskResult
from pml_gateway.domain.tool_calls.tool_result import error_result, result_of
from pml_gateway.ports import HERE, AgentApi, Caller, CallerSide

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class MetaTool(Generic[M]):
    """A tool of PML's own. `handler` gets the validated arguments, and returns the JSON of an MCP
    `CallToolResult`."""

    name: str
    title: str
    description: str
    annotations: ToolAnnotations
    arguments: type[M]
    handler: Callable[[AgentApi, Caller, M, CallerSide], Awaitable[JsonObject]]
    output: JsonObject | None = None
    """The schema of `structuredContent`, if every answer has that."""

    @cached_property
    def listing(self) -> Tool:
        """The tool as `tools/list` returns it."""
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=input_schema(self.arguments),
            output_schema=self.output,
            annotations=self.annotations,
        )

    async def call(
        self, agent: AgentApi, caller: Caller, args: JsonObject, side: CallerSide = HERE
    ) -> JsonObject:
        """Run the handler. Raises InvalidRequest that names the field at fault."""
        try:
            arguments = self.arguments.model_validate(args)
        except ValidationError as error:
            fault = error.errors()[0]
            field, words = field_of(fault["loc"]), in_words({**fault})
            said = words if words.startswith("is ") else f"is invalid: {words}"
            raise InvalidRequest(field, said) from None
        return await self.handler(agent, caller, arguments, side)


async def _execute(
    agent: AgentApi, caller: Caller, request: ExecuteRequest, side: CallerSide
) -> JsonObject:
    if request.timeout is not None and not side.as_task:
        side = replace(side, answer_by=None)
    answer = await agent.execute(caller.scope, caller.principal, request, side)
    return execute_result(or_task(answer, as_task=side.as_task), request.detail)


PML_EXECUTE: Final = MetaTool(
    name="pml_execute",
    title="Run code or a capability",
    description="""\
Run a TypeScript program that calls MCP tools, or a capability learned from earlier runs.

Pass `code` (the body of an async function) or `capability` (with `args`). In the code, `await
mcp.<server>.<tool>({...})` or `await mcp.call("server:tool", {...})` calls a tool, by its exact
name and parameters, and throws if it fails. It gives the value itself, never `{content: [...]}`:
the structured object, if the tool's outputSchema has one (a list or a number then is its `result`);
else the text as a string, also if that is JSON (JSON.parse it); else, of several blocks, a list of
`{type: "text", text}` and `{type: "resource", resource: {text}}`. `await
capabilities.<name>({...})` or `await mcp.call("cap:ns:name", {...})` calls a capability. Await
every call (several at once: `await Promise.all([...])`): what is left unawaited at the end is an
error. `args` holds the arguments; the value of `return` is the result. Tools are the only access to
the outside: no imports, network or files.

The whole program is analyzed before anything runs. Status `approval_required` means that a person
must approve first: nothing has run yet or, with `approval.begun`, the run is parked at a tool call
or, with `approval.layer`, between two layers of a dag. There, and after `running`, `next` says how
to get the result: do not send the program again. `error` says what failed and where.
A program that succeeds is stored as a capability, under `name` if given, and can be found by its
`intent`. With `cached` nothing ran: the result is that of an earlier workflow with the same
capability and arguments.""",
    annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True),
    arguments=ExecuteRequest,
    handler=_execute,
    output=execute_output(),
)


async def _get_task_result(
    agent: AgentApi, caller: Caller, asked: GetTaskResult, side: CallerSide
) -> JsonObject:
    try:
        return execute_result(await agent.result(caller, asked, side), "tasks")
    except ResultUnavailable as error:
        return error_result(str(error), {"error": {"kind": error.kind, "message": str(error)}})


PML_GET_TASK_RESULT: Final = MetaTool(
    name=RESULT_TOOL,
    title="Get a result",
    description="""\
Get the result of a workflow that pml_execute or a tool began, or, with `task_id`, the whole result
of one of its `tasks`, of which answers show the first 240 characters.

Call it after an answer `approval_required` or `running`, with `wait_s`: it waits for the person's
decision and for the end. A long result comes in pages of text: ask again with `next_offset` as
`offset`. `part: "console"` returns pages of what the program wrote to its console: the last 256 KiB
of lines, after `logsOmitted` others. Errors: `unknown` (no such workflow or task), `not_yet` (the
task has no result yet), `expired` (results of tasks are kept for a time, a workflow's own until its
data is deleted).""",
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    arguments=GetTaskResult,
    handler=_get_task_result,
)


class CancelArguments(Request):
    """Arguments of `pml_cancel`."""

    workflow_id: UUID = Field(description="`workflowId` of an answer.")
    reason: Annotated[str, StringConstraints(max_length=2000)] | None = Field(
        default=None, description="Why, in a sentence; it becomes part of the workflow's error."
    )


async def _cancel(
    agent: AgentApi, caller: Caller, asked: CancelArguments, side: CallerSide
) -> JsonObject:
    return cancel_result(await agent.stop(caller, asked.workflow_id, asked.reason))


PML_CANCEL: Final = MetaTool(
    name="pml_cancel",
    title="Cancel a workflow",
    description="""\
Cancel a workflow that runs or waits for approval. The answer tells which calls it had made, and
which of them have an unknown outcome.""",
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
    arguments=CancelArguments,
    handler=_cancel,
)


class DiscoverFilter(Request):
    """Restricts the results of `pml_discover`."""

    type: Literal["tool", "capability", "all"] = "all"
    min_score: float = Field(
        default=0, ge=0, le=1, validation_alias=AliasChoices("min_score", "minScore")
    )


class DiscoverArguments(Request):
    """Arguments of `pml_discover`."""

    intent: Intent = Field(description="What you want to do, in your own words.")
    filter: DiscoverFilter = Field(default_factory=DiscoverFilter)
    limit: int = Field(default=10, ge=1, le=100)
    offset: int = Field(default=0, ge=0, lt=MAX_OFFSET)

    def query(self, caller: Caller) -> Discover:
        """Build the query to the registry."""
        return Discover(
            scope=caller.scope,
            principal=caller.principal,
            intent=self.intent,
            type=self.filter.type,
            min_score=self.filter.min_score,
            limit=self.limit,
            offset=self.offset,
        )


async def _discover(
    agent: AgentApi, caller: Caller, arguments: DiscoverArguments, side: CallerSide
) -> JsonObject:
    page = await agent.discover(arguments.query(caller))
    return result_of(page.model_dump(mode="json", exclude_none=True), structured=True)


PML_DISCOVER: Final = MetaTool(
    name="pml_discover",
    title="Find tools and capabilities",
    description="""\
Find tools and capabilities for an intent, best match first, each with a `call` line ready for a
program, its TypeScript `signature`, and the schema of its arguments. Begin here.

A capability is a program that has succeeded before: run it with pml_execute
{"capability": "<name>", "args": {...}}, as the tool `mcp_tool`, or in a program by `call`;
`preview` is how it begins. Pass `discovery_id` to the pml_execute that follows. Scores are between
0 and 1. `degraded`: for now found by words alone, so use the words of tools.""",
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    arguments=DiscoverArguments,
    handler=_discover,
    output=discover_output(),
)


class ListArguments(Request):
    """Arguments of `pml_list_capabilities`."""

    namespace: Glob | None = Field(
        default=None, description="Namespace of the names, as `fs`; `*` stands for any text."
    )
    sort: Literal["usage", "date", "name"] = Field(
        default="usage",
        description="The most used, the newest, or the first of the alphabet first.",
    )
    include_unnamed: bool = Field(default=False, description="Also those that were given no name.")
    limit: int = Field(default=50, ge=1, le=200)
    cursor: Cursor | None = Field(
        default=None, description="`next_cursor` of the page before; none for the first."
    )

    def query(self, caller: Caller) -> QueryRecords:
        """Build the query to the registry."""
        return QueryRecords(scope=caller.scope, principal=caller.principal, **dict(self))


async def _list(
    agent: AgentApi, caller: Caller, arguments: ListArguments, side: CallerSide
) -> JsonObject:
    return listed_capabilities(await agent.query_records(arguments.query(caller)))


PML_LIST_CAPABILITIES: Final = MetaTool(
    name="pml_list_capabilities",
    title="List capabilities",
    description="""\
List the capabilities of this project by name, each at its latest version, with the runs and the
learned success rate of that version (`counts`).

Run one with pml_execute {"capability": "<name>", "args": {...}}; pml_discover finds them by what
they are for.""",
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    arguments=ListArguments,
    handler=_list,
)


async def _curate(
    agent: AgentApi, caller: Caller, request: CurateNames, side: CallerSide
) -> JsonObject:
    answer = await agent.curate(caller.scope, caller.principal, request, side)
    answer = or_task(answer, as_task=side.as_task)
    return answer_result("pml_curate_capabilities", answer, structured=True)


PML_CURATE_CAPABILITIES: Final = MetaTool(
    name="pml_curate_capabilities",
    title="Name capabilities",
    description="""\
Name the capabilities of this project that have no name: `suggest` names, each with reasons and a
confidence; `apply` the `names` that you choose; `auto`: give those of at least `min_confidence`.

To give names needs a person's approval, unless the policy allows `learn:curate`. A name that is
held is never given. `merges` are capabilities that differ by literals alone: learn:save with `lift`
makes one of them.""",
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
    arguments=CurateNames,
    handler=_curate,
)

META_TOOLS: Final[Mapping[str, MetaTool[Any]]] = {
    tool.name: tool
    for tool in (
        PML_EXECUTE,
        PML_DISCOVER,
        PML_LIST_CAPABILITIES,
        PML_CURATE_CAPABILITIES,
        PML_GET_TASK_RESULT,
        PML_CANCEL,
    )
}
"""All of them by name, in the order in which they are listed."""
