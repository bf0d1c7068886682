"""The standard library, with the services behind it."""

import asyncio
from typing import Any

from typing_extensions import override

from pml_common.bus.port import QueryClient
from pml_common.contracts.decision import Policy
from pml_gateway.adapters.memory.speculations import MemorySpeculatedRuns
from pml_gateway.adapters.memory.workflows import MemoryWorkflowStore
from pml_gateway.adapters.std.server import StdServers
from pml_gateway.adapters.std.tools import Backing
from pml_gateway.application.composing import Composing
from pml_gateway.application.speculation_learning import SpeculationLearning
from pml_gateway.domain.api.speculation_threshold import ThresholdRule
from services.gateway.tests.support.builders import AT


def std_servers(client: QueryClient) -> StdServers:
    """The servers of the standard library, with a registry and an analyzer behind `client`."""
    store = MemoryWorkflowStore()
    composed = Composing(client, store, lambda scope: Policy(), lambda: AT)
    rule = ThresholdRule(0.5, 0.1)
    learning = SpeculationLearning(MemorySpeculatedRuns(store), client, rule, lambda: AT)
    servers: list[StdServers] = []
    backing = Backing(client, composed, learning, lambda: servers[0], lambda scope: Policy())
    servers.append(StdServers(backing, AT))
    return servers[0]


class Silent(QueryClient):
    """Never answers, whatever the timeout."""

    @override
    async def request(self, query_type: object, query: object, *, timeout: float = 5.0) -> Any:
        await asyncio.Event().wait()
