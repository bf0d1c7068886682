"""Signals to the other gateways."""

from uuid import uuid4

from typing_extensions import override

from pml_common.bus.port import Publisher
from pml_common.contracts.client_sessions import ClientMessage, SessionEnded
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.client_session import ClientSession
from pml_gateway.ports import Replicas


class BusReplicas(Replicas):
    """Sends signals over the bus."""

    def __init__(self, bus: Publisher) -> None:
        self._bus = bus

    @override
    async def pass_on(self, session: ClientSession, message: JsonObject) -> None:
        signal = ClientMessage(
            scope=session.scope, signal_id=uuid4(), session=session.key, message=message
        )
        await self._bus.publish(signal)

    @override
    async def tell_ended(self, session: ClientSession) -> None:
        ended = SessionEnded(scope=session.scope, signal_id=uuid4(), session=session.key)
        await self._bus.publish(ended)
