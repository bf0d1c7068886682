"""A small MCP server, run as a program: over stdio, or over HTTP with `--port`.

Its calls are logged to the file `--log`, a line each. With `--legacy` it supports only revisions
of the protocol that begin with a handshake.
"""

# waits on purpose: slow tools are what it offers

import argparse
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp import MCPError, stdio_server
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.sse import SseServerTransport
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptMessage,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceLink,
    ResourceTemplate,
    SamplingMessage,
    SetLevelRequestParams,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

Context = ServerRequestContext[Any, Any]
Run = Callable[[Context, dict[str, Any]], Awaitable[CallToolResult]]

TEXT: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}


def says(*texts: str, error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text) for text in texts], is_error=error)


class Program:
    """Handlers of the tools, one method each."""

    def __init__(self, log: Path, odd: bool) -> None:
        self._log = log
        self._odd = odd
        self._listings = 0
        self._echoes = ["echo"]
        self._notes, self._prompts = ["first", "second"], ["greet"]
        self.changes = InMemorySubscriptionBus()
        self.levels: list[str] = []

    async def list_tools(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        anything: dict[str, Any] = {"type": "object"}
        echoes = [
            Tool(
                name=name,
                title="Echo",
                description=self._description(),
                input_schema=TEXT,
                output_schema=TEXT,
                annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True),
            )
            for name in self._echoes
        ]
        others = [Tool(name=name, input_schema=anything) for name in self._others()]
        lie = Tool(name="lie", input_schema=anything, output_schema=TEXT)
        self._listings += 1
        meta: Any = {"version": 1, "at": self._listings}
        changing = Tool(name="changing", input_schema=anything, _meta=meta)
        odd = [changing, lie] if self._odd else []
        return ListToolsResult(tools=[*echoes, *others, lie, *odd])

    async def call_tool(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        args = params.arguments or {}
        if params.name in self._echoes:
            return await self.echo(ctx, args)
        if params.name == "lie":
            return CallToolResult(content=[], structured_content={"text": 5})
        run = self._others().get(params.name)
        if run is None:
            raise MCPError(METHOD_NOT_FOUND, f"no tool {params.name}")
        return await run(ctx, args)

    async def list_resources(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """List the notes, one a page."""
        notes = self._notes
        at = int(params.cursor) if params is not None and params.cursor else 0
        note = Resource(uri=f"note:///{notes[at]}", name=notes[at], title="A note")
        further = str(at + 1) if at + 1 < len(notes) else None
        return ListResourcesResult(resources=[note], next_cursor=further)

    async def list_templates(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        listed = ResourceTemplate(uri_template="word://{word}", name="word")
        return ListResourceTemplatesResult(resource_templates=[listed])

    async def read_resource(
        self, ctx: Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        uri = str(params.uri)
        if uri == "note:///lost":
            raise MCPError(INVALID_PARAMS, "it is lost", {"uri": uri})
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=f"read {uri}")])

    async def list_prompts(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListPromptsResult:
        return ListPromptsResult(prompts=[Prompt(name=name) for name in self._prompts])

    async def get_prompt(self, ctx: Context, params: GetPromptRequestParams) -> GetPromptResult:
        said = TextContent(text=f"{params.name} {params.arguments}")
        return GetPromptResult(messages=[PromptMessage(role="user", content=said)])

    async def complete(self, ctx: Context, params: CompleteRequestParams) -> CompleteResult:
        ref, given = params.ref, params.argument.value
        named = ref.name if isinstance(ref, PromptReference) else ref.uri
        return CompleteResult(completion=Completion(values=[f"{named} {given}"]))

    def _description(self) -> str:
        """The description of `echo`: what the file `description` beside the log says, if any."""
        told = self._log.with_name("description")
        return told.read_text() if told.exists() else "Say it again."

    def _others(self) -> dict[str, Run]:
        runs = (
            self.count,
            self.slow,
            self.blocks,
            self.die,
            self.freeze,
            self.variable,
        )
        more = (self.grow, self.huge, self.write, self.link, self.steps, self.ask, self.report)
        return {run.__name__: run for run in (*runs, *more)}

    def _note(self, line: str) -> None:
        with self._log.open("a") as file:
            file.write(f"{line}\n")

    async def echo(self, ctx: Context, args: dict[str, Any]) -> CallToolResult:
        if "text" not in args:
            return says("text is missing", error=True)
        return CallToolResult(content=[], structured_content={"text": args["text"]})

    async def count(self, ctx: Context, args: dict[str, Any]) -> CallToolResult:
        self._note(args["key"])
        return says("counted")

    async def slow(self, ctx: Context, args: dict[str, Any]) -> CallToolResult:
        self._note("slow began")
        try:
            await anyio.sleep(args["seconds"])
        except anyio.get_cancelled_exc_class():
            self._note("slow cancelled")
            raise
        return says("done")

    async def blocks(self, ctx: Context, args: dict[str, Any]) -> CallToolResult:
        return says("one", "two")

    async def die(self, ctx: Context, args: dict[str, Any]) -> CallToolResult:
        self._note("died")
        os._exit(3)

    async def freeze(self, ctx: Context, args: dict[str, Any]) -> CallToolResult:
        self._note("frozen")
        time.sleep(args["seconds"])  # noqa: ASYNC251 - a server that answers nobody is the point
        return says("thawed")

    async def variable(self, ctx: Context, args: dict[str, Any]) -> CallToolResult:
        return says(os.environ.get(args["name"], "absent"))

    async def huge(self, ctx: Context, args: dict[str, Any]) -> CallToolResult:
        """Write a line to stderr and return one."""
        self._note("huge")
        sys.stderr.write("y" * args["stderr"])
        return says("x" * args["size"])

    async def grow(self, ctx: Context, args: dict[str, Any]) -> CallToolResult:
        self._echoes.append(args["name"])
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            await self.changes.publish(ToolsListChanged())
        else:
            await ctx.session.send_tool_list_changed()
        return says("grown")

    async def write(self, ctx: Context, args: dict[str, Any]) -> CallToolResult:
        """Offer a note and a prompt more."""
        self._notes.append(args["name"])
        self._prompts.append(args["name"])
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            await self.changes.publish(ResourcesListChanged())
            await self.changes.publish(PromptsListChanged())
        else:
            await ctx.session.send_resource_list_changed()
            await ctx.session.send_prompt_list_changed()
        return says("written")

    async def steps(self, ctx: Context, args: dict[str, Any]) -> CallToolResult:
        """Report progress in so many steps."""
        for step in range(1, args["steps"] + 1):
            await ctx.session.report_progress(step, args["steps"], f"step {step}")
        return says("done")

    async def ask(self, ctx: Context, args: dict[str, Any]) -> CallToolResult:
        """Ask the client for a name and a text (revisions with a handshake)."""
        asked = await ctx.session.elicit_form("Who?", {"type": "object", "properties": {}})
        message = SamplingMessage(role="user", content=TextContent(text="Hello?"))
        sampled = await ctx.session.create_message(  # pyright: ignore[reportDeprecated]
            [message], max_tokens=9
        )
        return says(f"{asked.action} {asked.content} {sampled.model}")

    async def report(self, ctx: Context, args: dict[str, Any]) -> CallToolResult:
        """Log at three levels, those that are wanted, and answer after a while."""
        is_legacy = ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS
        for level, said in (("info", "an info"), ("notice", "a notice"), ("alert", "an alert")):
            if is_legacy and level not in self.levels:
                continue
            logger = "disk" if level == "alert" else None
            send: Any = ctx.session.send_log_message  # pyright: ignore[reportDeprecated]
            await send(level, said, logger)
        await anyio.sleep(args["hold"])
        return says("reported")

    async def set_level(self, ctx: Context, params: SetLevelRequestParams) -> EmptyResult:
        self._note(f"level {params.level}")
        order = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
        self.levels = order[order.index(params.level) :]
        return EmptyResult()

    async def link(self, ctx: Context, args: dict[str, Any]) -> CallToolResult:
        return CallToolResult(content=[ResourceLink(uri=args["uri"], name="linked")])


async def no_discovery(ctx: Context, call_next: CallNext) -> HandlerResult:
    if ctx.method == "server/discover":
        raise MCPError(METHOD_NOT_FOUND, "Method not found")
    return await call_next(ctx)


async def serve_stdio(server: Server[Any], legacy: bool) -> None:
    options = server.create_initialization_options(NotificationOptions(True, True, True))
    async with stdio_server() as (reads, writes):
        if legacy:
            await serve_loop(server, reads, writes, lifespan_state={}, init_options=options)
        else:
            await server.run(reads, writes, options)


def server_of(program: Program) -> Server[Any]:
    """Build the server."""
    server = Server(
        "for-tests",
        on_list_tools=program.list_tools,
        on_call_tool=program.call_tool,
        on_list_resources=program.list_resources,
        on_list_resource_templates=program.list_templates,
        on_read_resource=program.read_resource,
        on_list_prompts=program.list_prompts,
        on_get_prompt=program.get_prompt,
        on_completion=program.complete,
        on_subscriptions_listen=ListenHandler(program.changes),
    )
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, program.set_level)
    return server


def sse_app(server: Server[Any]) -> Starlette:
    """Serve the transport of before 2025-03-26: a stream at /sse, messages at /messages."""
    transport = SseServerTransport("/messages")
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))

    async def stream(request: Request) -> Response:
        send = request._send  # pyright: ignore[reportPrivateUsage]
        async with transport.connect_sse(request.scope, request.receive, send) as (reads, writes):
            await serve_loop(server, reads, writes, lifespan_state={}, init_options=options)
        return Response()

    messages = Mount("/messages", app=transport.handle_post_message)
    return Starlette(routes=[Route("/sse", stream, methods=["GET"]), messages])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--legacy", action="store_true")
    parser.add_argument("--sse", action="store_true", help="serve HTTP with SSE at /sse")
    parser.add_argument("--odd", action="store_true", help="list one tool twice")
    options = parser.parse_args()
    server = server_of(Program(options.log, options.odd))
    if options.legacy:
        server.middleware.append(no_discovery)
    sys.stderr.write("the test server speaks\n")
    if options.port and options.sse:
        uvicorn.run(sse_app(server), port=options.port, log_level="warning")
    elif options.port:
        uvicorn.run(server.streamable_http_app(), port=options.port, log_level="warning")
    else:
        anyio.run(serve_stdio, server, options.legacy)


if __name__ == "__main__":
    main()
