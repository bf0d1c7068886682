"""Tools of the fixture servers that take long enough to become tasks, and one that does not."""

# waits on purpose: slow tools are what it offers

from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp_types import (
    INTERNAL_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
)

from tests.conformance.fixtures import text

Context = ServerRequestContext[Any, Any]
Answer = CallToolResult | InputRequiredResult
Run = Callable[[Context, CallToolRequestParams], Awaitable[Answer]]

_LONG_S: Final = 0.8
"""A call of this time becomes a task."""


async def _greet(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    return CallToolResult(content=[text(f"Hello, {(params.arguments or {}).get('name')}!")])


async def _fails_late(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    await anyio.sleep(_LONG_S)
    return CallToolResult(content=[text("the job failed")], is_error=True)


async def _breaks_late(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    await anyio.sleep(_LONG_S)
    raise MCPError(INTERNAL_ERROR, "the job broke")


def _asks(after_s: float, works_s: float, *names: str) -> Run:
    """Return a tool that asks for these texts, all at once, and then works."""

    async def run(ctx: Context, params: CallToolRequestParams) -> Answer:
        given = params.input_responses or {}
        if not given.keys() >= {*names}:
            await anyio.sleep(after_s)
            return InputRequiredResult(input_requests={name: _form(name) for name in names})
        await anyio.sleep(works_s)
        said = {key: each.model_dump(mode="json") for key, each in given.items()}
        return CallToolResult(content=[text(f"done with {said}")])

    return run


def _form(name: str) -> ElicitRequest:
    schema: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = ElicitRequestFormParams(message=f"Please answer {name}.", requested_schema=schema)
    return ElicitRequest(params=params)


JOBS: Final[dict[str, Run]] = {
    "greet": _greet,
    "failing_job": _fails_late,
    "protocol_error_job": _breaks_late,
    "confirm_delete": _asks(_LONG_S, 0, "confirm"),
    "multi_input": _asks(_LONG_S, 0, "first", "second"),
}
"""Under the names that the scenarios call."""

tool_with_task: Final = _asks(0, _LONG_S, "user_name")
"""Asks before its call is a task, which it becomes then."""
