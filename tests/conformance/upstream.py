"""An MCP server that offers what the scenarios of the conformance suite ask for, run over stdio.

The suite asks for tools and prompts by fixed names such as `test_simple_text`. PML lists them under
their server's name, so this one is configured as `test` and its tool is `simple_text`. As `json`
and `slow` it offers the tools that are called otherwise, as `jobs` those that have no prefix.
"""

# waits on purpose: slow tools are what it offers

import argparse
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
from mcp import MCPError, stdio_server
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import PromptsListChanged, ToolsListChanged
from mcp_types import (
    INVALID_PARAMS,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    Icon,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceLink,
    ResourceTemplate,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from tests.conformance.asking import ASKING, ask_for_prompt, require_sampling
from tests.conformance.fixtures import (
    AUDIO,
    EMBEDDED,
    IMAGE,
    MIXED,
    PROMPTS,
    SCHEMA_2020_12,
    text,
)
from tests.conformance.jobs import JOBS, tool_with_task

Context = ServerRequestContext[Any, Any]
Answer = CallToolResult | InputRequiredResult
Run = Callable[[Context, CallToolRequestParams], Awaitable[Answer]]

UNLISTED: Final = "test://unlisted"
"""A resource that is in no list: a tool's result links to it. No scenario of the suite asks so."""

ICON: Final = Icon(src="data:image/png;base64,AAAA", sizes=["48x48"])

_PAUSE_S: Final = 0.05
_ANY: Final[dict[str, Any]] = {"type": "object"}
_READS: Final = ToolAnnotations(read_only_hint=True)
"""No tool has an effect that anybody must approve."""

_changes = InMemorySubscriptionBus()


def _says(*blocks: Any) -> Run:
    async def run(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[*blocks])

    return run


async def _fails(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    said = text("This tool intentionally returns an error for testing")
    return CallToolResult(content=[said], is_error=True)


async def _logs(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message(  # pyright: ignore[reportDeprecated] - clients have it
            "info", line, related_request_id=ctx.request_id
        )
        await anyio.sleep(_PAUSE_S)
    return CallToolResult(content=[text("logged three lines")])


async def _progresses(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"{done} of 100")
        await anyio.sleep(_PAUSE_S)
    return CallToolResult(content=[text("went through three steps")])


async def _changes_tools(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    _grown.append(f"grown_{len(_grown)}")
    await _changes.publish(ToolsListChanged())
    return CallToolResult(content=[text("one tool more")])


async def _changes_prompts(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    _grown_prompts.append(f"grown_{len(_grown_prompts)}")
    await _changes.publish(PromptsListChanged())
    return CallToolResult(content=[text("one prompt more")])


_grown: list[str] = []
_grown_prompts: list[str] = []
_TOOLS: Final[dict[str, Run]] = {
    "simple_text": _says(text("This is a simple text response for testing.")),
    "image_content": _says(IMAGE),
    "audio_content": _says(AUDIO),
    "embedded_resource": _says(EMBEDDED),
    "multiple_content_types": _says(text("Multiple content types test:"), IMAGE, MIXED),
    "tool_with_logging": _logs,
    "logging_tool": _logs,
    "tool_with_progress": _progresses,
    "error_handling": _fails,
    "resource_link": _says(ResourceLink(uri=UNLISTED, name="unlisted")),
    "missing_capability": require_sampling,
    "trigger_tool_change": _changes_tools,
    "trigger_prompt_change": _changes_prompts,
    "tool_with_task": tool_with_task,
    **ASKING,
}
_STATIC: Final = "test://static-text"
_BINARY: Final = "test://static-binary"
_WATCHED: Final = "test://watched-resource"
_TEMPLATE: Final = "test://template/{id}/data"


async def _list_tools(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(
        tools=[
            Tool(
                name=name,
                title="Link to a resource" if name == "resource_link" else None,
                description=f"Test: {name}.",
                input_schema=_ANY,
                annotations=_READS,
                icons=[ICON] if name == "resource_link" else None,
                _meta={"example.org/kind": "test"},
            )
            for name in (*_TOOLS, *_grown)
        ]
    )


async def _call_tool(ctx: Context, params: CallToolRequestParams) -> Answer:
    run = _TOOLS.get(params.name)
    if run is None:
        raise MCPError(INVALID_PARAMS, f"no tool {params.name}")
    return await run(ctx, params)


async def _list_json_tools(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    named = "schema_2020_12_tool"
    tool = Tool(name=named, description="Takes an address.", input_schema=SCHEMA_2020_12)
    return ListToolsResult(tools=[tool])


async def _list_slow_tools(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    tool = Tool(name="compute", input_schema=_ANY, annotations=_READS)
    return ListToolsResult(tools=[tool])


async def _compute(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    await anyio.sleep((params.arguments or {})["seconds"])
    return CallToolResult(content=[text("computed")])


async def _list_jobs(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    jobs = [Tool(name=name, input_schema=_ANY, annotations=_READS) for name in JOBS]
    return ListToolsResult(tools=jobs)


async def _run_job(ctx: Context, params: CallToolRequestParams) -> Answer:
    return await JOBS[params.name](ctx, params)


async def _list_resources(
    ctx: Context, params: PaginatedRequestParams | None
) -> ListResourcesResult:
    return ListResourcesResult(
        resources=[
            Resource(uri=uri, name=uri.rpartition("/")[2], description=f"Test: {uri}.")
            for uri in (_STATIC, _BINARY, _WATCHED)
        ]
    )


async def _list_templates(
    ctx: Context, params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    listed = ResourceTemplate(uri_template=_TEMPLATE, name="data", description="Data by id.")
    return ListResourceTemplatesResult(resource_templates=[listed])


async def _read_resource(ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    uri, plain = str(params.uri), "text/plain"
    before, after = _TEMPLATE.split("{id}")
    if uri == _BINARY:
        blob = BlobResourceContents(uri=uri, mime_type="image/png", blob=IMAGE.data)
        return ReadResourceResult(contents=[blob])
    if uri in (_STATIC, _WATCHED, UNLISTED):
        said = "This is the content of the static text resource."
        return ReadResourceResult(
            contents=[TextResourceContents(uri=uri, mime_type=plain, text=said)]
        )
    if uri.startswith(before) and uri.endswith(after):
        data = {"id": uri[len(before) : -len(after)], "templateTest": True}
        told = TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(data))
        return ReadResourceResult(contents=[told])
    raise MCPError(INVALID_PARAMS, f"no resource {uri}", {"uri": uri})


async def _list_prompts(ctx: Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
    grown = [
        each.prompt.model_copy(update={"name": name})
        for each in (PROMPTS[0],)
        for name in _grown_prompts
    ]
    return ListPromptsResult(prompts=[*(each.prompt for each in PROMPTS), *grown])


async def _get_prompt(
    ctx: Context, params: GetPromptRequestParams
) -> GetPromptResult | InputRequiredResult:
    if params.name == "input_required_result_prompt":
        return ask_for_prompt(params)
    for each in PROMPTS:
        if each.prompt.name == params.name:
            return GetPromptResult(messages=each.messages(params.arguments or {}))
    raise MCPError(INVALID_PARAMS, f"no prompt {params.name}")


async def _complete(ctx: Context, params: CompleteRequestParams) -> CompleteResult:
    cities = [c for c in ("paris", "park", "party") if c.startswith(params.argument.value)]
    return CompleteResult(completion=Completion(values=cities, total=len(cities), has_more=False))


def _server(name: str) -> Server[Any]:
    if name == "json":
        return Server(name, on_list_tools=_list_json_tools)
    if name == "slow":
        return Server(name, on_list_tools=_list_slow_tools, on_call_tool=_compute)
    if name == "jobs":
        return Server(name, on_list_tools=_list_jobs, on_call_tool=_run_job)
    return Server(
        name,
        cache_hints={"tools/list": CacheHint(ttl_ms=0, scope="private")},
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read_resource,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
        on_completion=_complete,
        on_subscriptions_listen=ListenHandler(_changes),
    )


async def _serve(name: str) -> None:
    server = _server(name)
    changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    async with stdio_server() as (reads, writes):
        await server.run(reads, writes, server.create_initialization_options(changes))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("name", choices=["test", "json", "slow", "jobs"])
    anyio.run(_serve, arguments.parse_args().name)
