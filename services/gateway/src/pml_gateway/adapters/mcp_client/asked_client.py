"""Requests of an upstream server, during a call, to the client that caused the call."""

from typing import Any, Final, cast

from mcp import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CreateMessageRequest,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitResult,
    InputRequest,
    InputRequests,
    InputResponse,
    InputResponses,
    ListRootsResult,
)
from pydantic import TypeAdapter, ValidationError

from pml_common.contracts.fault_words import faults_of
from pml_common.contracts.tool import JsonObject
from pml_gateway.ports import CallerSide, ClientRefused

_KINDS: Final = ("elicitation", "sampling", "roots")
_SAMPLED: TypeAdapter[Any] = TypeAdapter(CreateMessageResult | CreateMessageResultWithTools)


def askable(side: CallerSide | None) -> JsonObject:
    """Return the capabilities by which a call's client can be asked, in its answer or meanwhile."""
    if side is None or side.client is None or not (side.inputs or side.client.takes_requests):
        return {}
    return {kind: side.client.capabilities[kind] for kind in _KINDS if _has(side, kind)}


class AskedClient:
    """The client of a call, as its server sees it."""

    def __init__(self, side: CallerSide | None, within_s: float) -> None:
        self._side = side
        self._within_s = within_s

    async def answers(self, requests: InputRequests) -> InputResponses:
        """Return the client's answers, asked one after the other. Raises MCPError."""
        return {key: await self.answer(request) for key, request in requests.items()}

    async def answer(self, request: InputRequest) -> InputResponse:
        """Return the client's answer to one request. Raises MCPError where there is none."""
        asked = request.model_dump(mode="json", by_alias=True, exclude_none=True)
        method = str(asked["method"])
        client = None if self._side is None else self._side.client
        if client is None or _kind_of(request) not in askable(self._side):
            message = f"the server asks for input ({method}), which the caller cannot give here"
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, message)
        try:
            result = await client.request(method, asked.get("params") or {}, self._within_s)
            return _typed(request, result)
        except ClientRefused as error:
            raise MCPError(error.code, f"{method}: {error.message}") from error
        except ValidationError as error:
            message = f"the client's answer to {method} is none: {faults_of(error)[0]}"
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, message) from error


def _has(side: CallerSide, kind: str) -> bool:
    return side.client is not None and isinstance(side.client.capabilities.get(kind), dict)


def _kind_of(request: InputRequest) -> str:
    match request:
        case ElicitRequest():
            return "elicitation"
        case CreateMessageRequest():
            return "sampling"
        case _:
            return "roots"


def _typed(request: InputRequest, result: JsonObject) -> InputResponse:
    match request:
        case ElicitRequest():
            return ElicitResult.model_validate(result, by_name=False)
        case CreateMessageRequest():
            return cast(InputResponse, _SAMPLED.validate_python(result, by_name=False))
        case _:
            return ListRootsResult.model_validate(result, by_name=False)
