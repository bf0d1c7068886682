"""MCP's tasks extension: `tasks/get`, `tasks/update`, `tasks/cancel`, and calls that become tasks.

Notifications of a task's state are not sent: they are optional, and the SDK's stream of changes has
none.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, cast
from uuid import UUID

from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.context import HandlerResult
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    ElicitResult,
    RequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.tool import JsonObject
from pml_common.errors import Retryable
from pml_gateway.domain.api.approval_form import FormAnswer, can_show_forms
from pml_gateway.domain.api.errors import InvalidRequest, NotFound, Unavailable
from pml_gateway.domain.api.mcp_tasks import (
    EXTENSION,
    INPUT,
    TaskBegun,
    declares_tasks,
    named_in,
    task_of,
)
from pml_gateway.entrypoints.mcp.asking import through_of
from pml_gateway.entrypoints.mcp.http_exchange import client_of
from pml_gateway.entrypoints.mcp.tools import McpTools
from pml_gateway.ports import Caller, CallerSide, TaskApi

Context = ServerRequestContext[Any, Any]

TASK_AFTER_S: Final = 0.5
"""Time after which a call becomes a task; shorter ones need no polling."""

_APPROVAL: Final = "approval-"


class TaskParams(RequestParams):
    """Parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class UpdateParams(TaskParams):
    """Parameters of `tasks/update`."""

    input_responses: dict[str, Any]


class Tasks:
    """Serves tasks to clients that declare the extension. `ttl_s` is the time for which a workflow
    is kept."""

    def __init__(
        self,
        api: TaskApi,
        tools: McpTools,
        caller_of: Callable[[Context], Awaitable[Caller]],
        ttl_s: float,
    ) -> None:
        self._api = api
        self._tools = tools
        self._caller_of = caller_of
        self._ttl_ms = int(ttl_s * 1000)

    def add_to(self, server: Server[Any]) -> None:
        """Declare the extension and register its methods."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/update", UpdateParams, self._update)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel)

    def side_of(self, ctx: Context, side: CallerSide) -> CallerSide:
        """Let a call become a task where its client polls, but one whose form was dismissed: what
        the agent is told then is the way on."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return side
        given = side.asker.given if side.asker is not None else None
        is_dismissed = given is not None and given.answer and given.answer.action == "cancel"
        if is_dismissed or side.client is None or not declares_tasks(side.client.capabilities):
            return side
        soon = asyncio.get_running_loop().time() + TASK_AFTER_S
        return replace(side, as_task=True, answer_by=side.answer_by and min(side.answer_by, soon))

    async def created(
        self, ctx: Context, caller: Caller, tool: str, begun: TaskBegun
    ) -> HandlerResult:
        """Return the answer to a call that goes on as a task; where that could not be found again,
        the answer that a client without tasks gets."""
        try:
            await self._api.keep(caller, begun.workflow_id)
            task = await self._task(ctx, caller, begun.workflow_id, tool, shows_forms=False)
        except (NotFound, Unavailable):
            result = await self._tools.result_of(caller, tool, begun.response)
            return CallToolResult.model_validate(result)
        return {**task, "resultType": "task"}

    async def _get(self, ctx: Context, params: TaskParams) -> JsonObject:
        caller, (workflow, tool) = await self._checked(ctx, params)
        with _as_errors():
            return await self._task(ctx, caller, workflow, tool, shows_forms=True)

    async def _update(self, ctx: Context, params: UpdateParams) -> JsonObject:
        caller, (workflow, _) = await self._checked(ctx, params)
        with _as_errors():
            answers, inputs = _answers_in(params.input_responses), _inputs_in(params)
            await self._api.answer(caller, workflow, answers, inputs, through_of(ctx))
        return {}

    async def _cancel(self, ctx: Context, params: TaskParams) -> JsonObject:
        caller, (workflow, _) = await self._checked(ctx, params)
        with _as_errors():
            await self._api.cancel(caller, workflow)
        return {}

    async def _task(
        self, ctx: Context, caller: Caller, workflow_id: UUID, tool: str, *, shows_forms: bool
    ) -> JsonObject:
        can_show = can_show_forms(_capabilities_of(ctx))
        state = await self._api.state(caller, workflow_id, shows_forms=shows_forms)
        form = state.form if can_show else None
        result: JsonObject = {}
        if state.workflow.finished_at is not None:
            result = await self._tools.result_of(caller, tool, state.response)
        return task_of(
            state.workflow, tool, self._ttl_ms, state.response, form, state.inputs, result
        )

    async def _checked(self, ctx: Context, params: TaskParams) -> tuple[Caller, tuple[UUID, str]]:
        """Return the caller, and the workflow and the tool of a task. Raises MCPError."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", ctx.method)
        if not declares_tasks(_capabilities_of(ctx)):
            needed: JsonObject = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
            message = f"{ctx.method} is for clients that declare the extension {EXTENSION}"
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, message, needed)
        routed = ctx.request.headers.get(MCP_NAME_HEADER) if ctx.request is not None else None
        if routed is not None and decode_header_value(routed) != params.task_id:
            message = f"the header {MCP_NAME_HEADER} is not the taskId of the body"
            raise MCPError(HEADER_MISMATCH, message)
        named = named_in(params.task_id)
        if named is None:
            raise MCPError(INVALID_PARAMS, "taskId is the id of no task")
        return await self._caller_of(ctx), named


@contextmanager
def _as_errors() -> Generator[None]:
    """Raise the errors of the application as JSON-RPC errors."""
    try:
        yield
    except (NotFound, InvalidRequest) as error:
        raise MCPError(INVALID_PARAMS, str(error)) from error
    except (QueryFailed, Retryable, Unavailable) as error:
        raise MCPError(INTERNAL_ERROR, f"{error}; try again later") from error


def _answers_in(responses: Mapping[str, Any]) -> dict[str, FormAnswer]:
    """Return the answers to forms; those to other requests are ignored. Raises InvalidRequest."""
    answers: dict[str, FormAnswer] = {}
    for key, response in responses.items():
        if not key.startswith(_APPROVAL):
            continue
        try:
            answer = ElicitResult.model_validate(response, by_name=False)
        except ValidationError:
            raise InvalidRequest(f"inputResponses.{key}", "is no answer to a form") from None
        answers[key] = FormAnswer(answer.action, answer.content)
    return answers


def _inputs_in(params: UpdateParams) -> dict[str, JsonObject]:
    """Return the answers to requests of tools' servers. Raises InvalidRequest."""
    inputs: dict[str, JsonObject] = {}
    for key, response in params.input_responses.items():
        if not key.startswith(INPUT):
            continue
        if not isinstance(response, dict):
            raise InvalidRequest(f"inputResponses.{key}", "is no answer: it must be an object")
        inputs[key] = cast(JsonObject, response)
    return inputs


def _capabilities_of(ctx: Context) -> JsonObject:
    client = client_of(ctx)
    return {} if client is None else client.capabilities
