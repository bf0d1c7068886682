"""Messages of clients about their open calls: answers to requests of ours, and cancellations. They
may come to another replica than the call."""

from collections.abc import Mapping

from pydantic import JsonValue

from pml_common.contracts.client_sessions import ClientMessage
from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.client_session import ClientSession
from pml_gateway.entrypoints.mcp.client_requests import ClientRequests
from pml_gateway.entrypoints.mcp.open_calls import OpenCalls
from pml_gateway.ports import Replicas

_CANCELLED = "notifications/cancelled"


def concerns_open_call(message: Mapping[str, JsonValue]) -> bool:
    """Whether a JSON-RPC message is an answer or a cancellation."""
    if "method" in message:
        return message["method"] == _CANCELLED and "id" not in message
    return "result" in message or "error" in message


class ClientMessages:
    """Delivers such messages to the open calls."""

    def __init__(self, requests: ClientRequests, calls: OpenCalls, replicas: Replicas) -> None:
        self.requests = requests
        self._calls = calls
        self._replicas = replicas

    async def take(self, session: ClientSession, message: Mapping[str, JsonValue]) -> None:
        """Deliver a message that a client sent us, to another replica where its call is not here.
        One of which nobody knows is ignored. Raises BusUnavailable."""
        if not self._deliver(session.key, message):
            await self._replicas.pass_on(session, dict(message))

    async def on_client_message(self, signal: ClientMessage) -> None:
        """Deliver a message that a client sent to another replica."""
        self._deliver(signal.session, signal.message)

    def wants(self, scope: Scope, session_key: str) -> bool:
        """Whether a call of this session is open here."""
        return self._calls.has_of(session_key) or self.requests.has_of(session_key)

    def _deliver(self, session_key: str, message: Mapping[str, JsonValue]) -> bool:
        if message.get("method") == _CANCELLED:
            return self._calls.cancel(session_key, message.get("params"))
        return self.requests.answer(session_key, message)
