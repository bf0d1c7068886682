"""Input that an upstream server asks for in place of a tool's result (2026-07-28): the call is
answered with that, and made again with the answers."""

from typing import Any

from mcp.server import ServerRequestContext
from mcp_types import CallToolRequestParams, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pml_common.contracts.tool import JsonObject
from pml_gateway.entrypoints.mcp.request_states import ServerStates
from pml_gateway.ports import Caller, ServerInputs

Context = ServerRequestContext[Any, Any]


class InputAsked(Exception):
    """A call is to be answered with what the tool's server asks for."""

    def __init__(self, answer: JsonObject) -> None:
        super().__init__("the tool's server asks for input")
        self.answer = answer


class PassedInputs:
    """Answers of clients to what upstream servers ask for."""

    def __init__(self, states: ServerStates) -> None:
        self._states = states

    def of(
        self, ctx: Context, caller: Caller, params: CallToolRequestParams
    ) -> ServerInputs | None:
        """Return the answers that a call carries for its tool's server; None for a client that
        cannot be answered with a request for input. Raises MCPError for another call's state."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return None
        sealed, state = params.request_state, None
        if sealed is not None:
            if not self._states.is_of_server(sealed):
                return ServerInputs()
            state = self._states.open(caller, params.name, params.arguments or {}, sealed)
        dumped: JsonObject = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        responses = dumped.get("inputResponses")
        return ServerInputs(responses if isinstance(responses, dict) else None, state)

    def without(self, params: CallToolRequestParams) -> CallToolRequestParams:
        """Return a call without the answers that are for its tool's server."""
        if not self._states.is_of_server(params.request_state):
            return params
        return params.model_copy(update={"request_state": None, "input_responses": None})

    def required(
        self, caller: Caller, params: CallToolRequestParams, asked: InputAsked
    ) -> InputRequiredResult:
        """Return the answer that asks for the server's input."""
        answer = InputRequiredResult.model_validate(asked.answer, by_name=False)
        if answer.request_state is None:
            return answer
        args = params.arguments or {}
        sealed = self._states.seal(caller, params.name, args, answer.request_state)
        return answer.model_copy(update={"request_state": sealed, "meta": None})
