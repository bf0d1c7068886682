"""One call of an upstream tool, and its server's messages to the client that caused it."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final, cast

from mcp import Client, MCPError
from mcp_types import (
    HEADER_MISMATCH,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    InputRequiredResult,
    InputResponses,
)
from pydantic import TypeAdapter

from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.adapters.mcp_client.asked_client import AskedClient, askable
from pml_gateway.adapters.mcp_client.capabilities import meta_with
from pml_gateway.ports import Caller, CallerSide, CallOrigin, ToolProgress

_ROUNDS: Final = 10
_RESPONSES: TypeAdapter[InputResponses] = TypeAdapter(InputResponses)


@dataclass(frozen=True)
class Asked:
    """A call as it is asked for; its tool was `judged` by this definition. `sent` is set while its
    server may have it. `origin` is its caller."""

    tool: str
    args: JsonObject
    timeout_s: float
    judged: ToolDefinition | None
    sent: asyncio.Event
    origin: CallOrigin | None = None

    @property
    def side(self) -> CallerSide | None:
        """The caller's end, where that waits in this process."""
        return None if self.origin is None else self.origin.side

    @property
    def caller(self) -> Caller | None:
        """The caller, if known."""
        return None if self.origin is None else self.origin.caller


async def called(client: Client, server: str, asked: Asked) -> JsonObject:
    """Make the call and return its `CallToolResult`; where its caller can be answered so, what the
    server asks for, or that it needs a capability of the client. Raises what the SDK raises."""
    inputs = None if asked.side is None else asked.side.inputs
    call = _Call(client, server, asked)
    try:
        if inputs is None:
            return _dumped(await call.completed())
        given = inputs.responses
        responses = None if given is None else _RESPONSES.validate_python(given, by_name=False)
        return _dumped(await call.made(responses, inputs.state))
    except MCPError as error:
        if inputs is None or error.code != MISSING_REQUIRED_CLIENT_CAPABILITY:
            raise
        refusal: JsonObject = {"code": error.code, "message": error.message, "data": error.data}
        return {"error": refusal}


class _Call:
    def __init__(self, client: Client, server: str, asked: Asked) -> None:
        self._client = client
        self._asked = asked
        self._tool_id = f"{server}:{asked.tool}"
        logs = None if asked.side is None else asked.side.logs
        level = None if logs is None else logs.level
        self._meta = cast(Any, meta_with(askable(asked.side), level))
        self._relay = None if asked.side is None else asked.side.relay

    async def completed(self) -> CallToolResult:
        """Make the call, with the answers of its client to what the server asks for meanwhile."""
        result = await self.made(None, None)
        for _ in range(_ROUNDS):
            if isinstance(result, CallToolResult):
                return result
            who = AskedClient(self._asked.side, self._asked.timeout_s)
            responses = await who.answers(result.input_requests or {})
            result = await self.made(responses, result.request_state)
        raise RuntimeError(f"the server asked for input {_ROUNDS} times and gave no result")

    async def made(
        self, responses: InputResponses | None, state: str | None
    ) -> CallToolResult | InputRequiredResult:
        """Make the call once; again if the server has the tool with other headers."""
        try:
            return await self._send(responses, state)
        except MCPError as error:
            if error.code != HEADER_MISMATCH:
                raise
            await self._client.list_tools()  # the SDK takes the headers of the listing
            return await self._send(responses, state)

    async def _send(
        self, responses: InputResponses | None, state: str | None
    ) -> CallToolResult | InputRequiredResult:
        return await self._client.session.call_tool(
            self._asked.tool,
            self._asked.args,
            self._asked.timeout_s,
            None if self._relay is None else self._on_progress,
            input_responses=responses,
            request_state=state,
            meta=self._meta,
            allow_input_required=True,
        )

    async def _on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._relay is not None:
            self._relay(ToolProgress(self._tool_id, progress, total, message))


def _dumped(result: CallToolResult | InputRequiredResult) -> JsonObject:
    return cast(JsonObject, result.model_dump(mode="json", by_alias=True, exclude_none=True))
