"""Messages of one scope, out of a durable consumer that gateways of all scopes share."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from pml_common.bus.port import Handler
from pml_common.contracts.base import Message
from pml_common.contracts.scope import Scope
from pml_common.errors import ServedElsewhere

M = TypeVar("M", bound=Message)


def in_scope(
    scope: Scope, handler: Handler[M], decides: Callable[[M], bool] = lambda _: True
) -> Handler[M]:
    """Build the handler that leaves messages of other scopes, on which a gateway with their tools
    and policy `decides`."""

    async def handle(message: M) -> Sequence[Message]:
        if message.scope != scope and decides(message):
            raise ServedElsewhere(f"{scope} is served here, not {message.scope}")
        return await handler(message)

    return handle
