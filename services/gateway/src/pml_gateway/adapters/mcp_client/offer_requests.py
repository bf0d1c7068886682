"""Requests to one upstream server about what it offers beside tools."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, Protocol, cast

from mcp import Client, MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    REQUEST_TIMEOUT,
    CompleteRequest,
    CompleteResult,
    GetPromptRequest,
    GetPromptResult,
    InputRequiredResult,
    ReadResourceRequest,
    ReadResourceResult,
)
from pydantic import TypeAdapter, ValidationError

from pml_common.contracts.tool import JsonObject
from pml_gateway.adapters.mcp_client.call_gate import CallGate, TurnedAway
from pml_gateway.adapters.mcp_client.capabilities import with_capabilities
from pml_gateway.adapters.mcp_client.connection import UpstreamConnection
from pml_gateway.adapters.mcp_client.errors import NotConnected, Refused, describe, not_connected
from pml_gateway.adapters.mcp_client.http_client import NOT_SENT
from pml_gateway.domain.api.errors import Unavailable
from pml_gateway.ports import Caller, OfferMethod, ServerRefused

_IDLE_WITHIN_S: Final = 1.0


class _Request(Protocol):
    def model_validate(self, obj: Any) -> Any: ...


_TYPES: Final[dict[OfferMethod, tuple[_Request, TypeAdapter[Any]]]] = {
    "resources/read": (ReadResourceRequest, TypeAdapter(ReadResourceResult | InputRequiredResult)),
    "prompts/get": (GetPromptRequest, TypeAdapter(GetPromptResult | InputRequiredResult)),
    "completion/complete": (CompleteRequest, TypeAdapter(CompleteResult)),
}

Connected = Callable[[], Awaitable[tuple[UpstreamConnection, Client]]]
"""Waits for a usable connection. Raises NotConnected."""


class OfferRequests:
    """Makes requests on a server's connection, at its turn like a call."""

    def __init__(self, name: str, gate: CallGate, connected: Connected) -> None:
        self._name = name
        self._gate = gate
        self._connected = connected

    async def ask(
        self,
        method: OfferMethod,
        params: JsonObject,
        capabilities: JsonObject,
        timeout_s: float,
        caller: Caller | None = None,
    ) -> JsonObject:
        """Return the server's result. Raises ServerRefused, Unavailable."""
        sent = asyncio.Event()
        try:
            async with asyncio.timeout(timeout_s), self._gate.entered():
                request = method, params, capabilities, timeout_s
                with self._as_refusals(method):
                    try:
                        return await self._attempt(*request, caller, sent)
                    except Refused:  # the connection looked usable; the next one is
                        return await self._attempt(*request, caller, sent)
        except TurnedAway as error:
            raise Unavailable(str(error)) from error
        except (NotConnected, Refused) as error:
            raise Unavailable(not_connected(self._name, str(error))) from error
        except TimeoutError as error:
            why = f"{self._name} did not answer {method} within {timeout_s:g} s"
            if sent.is_set():
                self._gate.unanswered(why)
            raise Unavailable(why) from error

    async def _attempt(
        self,
        method: OfferMethod,
        params: JsonObject,
        capabilities: JsonObject,
        timeout_s: float,
        caller: Caller | None,
        sent: asyncio.Event,
    ) -> JsonObject:
        """Send the request once. Raises what the SDK raises, NotConnected, and Refused where the
        server certainly did not receive it."""
        connection, client = await self._connected()
        sent.set()
        with connection.calling(None, caller):
            try:
                answer = await _send(client, method, params, capabilities, timeout_s)
            except MCPError as error:
                if error.data != NOT_SENT:
                    raise
                sent.clear()
                refusal = error
            else:
                self._gate.answered()
                return answer
        await connection.close_when_idle(str(refusal), _IDLE_WITHIN_S)
        raise Refused(str(refusal)) from refusal

    @contextmanager
    def _as_refusals(self, method: OfferMethod) -> Generator[None]:
        """Raise the server's errors as ServerRefused, lost connections as Unavailable."""
        began = time.monotonic()
        try:
            yield
        except MCPError as error:
            self._gate.failed(error, began, "")
            if error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
                raise Unavailable(f"{self._name} did not answer {method}: {error}") from error
            raise ServerRefused(error.code, error.message, error.data) from error
        except ValidationError as error:
            self._gate.failed(error, began, "")
            why = f"the answer of {self._name} is no result of {method}: {describe(error)}"
            raise ServerRefused(INTERNAL_ERROR, why) from error


async def _send(
    client: Client,
    method: OfferMethod,
    params: JsonObject,
    capabilities: JsonObject,
    timeout_s: float,
) -> JsonObject:
    request, result = _TYPES[method]
    asked = request.model_validate(
        {"method": method, "params": with_capabilities(params, capabilities)}
    )
    answer = await client.session.send_request(asked, result, timeout_s)
    dumped = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    return cast(JsonObject, dumped)
