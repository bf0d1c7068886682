"""Signals to the other gateways."""

from typing import Literal
from uuid import UUID, uuid4

from typing_extensions import override

from pml_common.bus.port import Publisher
from pml_common.contracts.client_sessions import ClientMessage, SessionEnded
from pml_common.contracts.gateway import WorkflowAwaited
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.client_session import ClientSession
from pml_gateway.ports import Replicas


class BusReplicas(Replicas):
    """Sends signals over the bus, as the gateway `instance`."""

    def __init__(self, bus: Publisher, instance: UUID) -> None:
        self._bus = bus
        self._instance = instance

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

    @override
    async def tell_awaited(
        self, scope: Scope, workflow_id: UUID, what: Literal["joined", "leaving", "staying"]
    ) -> None:
        awaited = WorkflowAwaited(
            scope=scope,
            signal_id=uuid4(),
            workflow_id=workflow_id,
            gateway=self._instance,
            what=what,
        )
        await self._bus.publish(awaited)
