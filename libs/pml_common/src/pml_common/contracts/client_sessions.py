"""Contracts between gateways: what clients of MCP sessions say to one of them."""

from typing import ClassVar

from pml_common.contracts.base import Signal
from pml_common.contracts.tool import JsonObject


class ClientMessage(Signal):
    """A client sent a message that concerns a call in another replica.

    `message` is JSON-RPC as it came: an answer to a request of ours (`id`, `result` or `error`), or
    `notifications/cancelled`. `session` is the key of the client's session.
    """

    entity_field: ClassVar[str] = "session"

    session: str
    message: JsonObject


class SessionEnded(Signal):
    """A client ended its session: its streams end in every replica."""

    entity_field: ClassVar[str] = "session"

    session: str
