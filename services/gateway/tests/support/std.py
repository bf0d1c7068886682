"""The standard library, with the services behind it."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from typing_extensions import override

from pml_common.bus.port import QueryClient
from pml_common.contracts.decision import Policy
from pml_common.contracts.scope import Scope
from pml_gateway.adapters.std.server import StdServers
from pml_gateway.adapters.std.tools import Backing
from pml_gateway.application.composing import Composing
from pml_gateway.application.speculation_learning import SpeculationLearning
from pml_gateway.domain.api.speculation_threshold import Opinion, SpeculatedRun, ThresholdRule
from pml_gateway.ports import SpeculatedRuns
from services.gateway.tests.support.builders import AT
from services.gateway.tests.support.fake_stores import FakeWorkflows


def std_servers(client: QueryClient) -> StdServers:
    """The servers of the standard library, with a registry and an analyzer behind `client`."""
    composed = Composing(client, FakeWorkflows(), lambda scope: Policy(), lambda: AT)
    rule = ThresholdRule(0.5, 0.1)
    learning = SpeculationLearning(NoGuesses(), client, rule, lambda: AT)
    servers: list[StdServers] = []
    backing = Backing(client, composed, learning, lambda: servers[0], lambda scope: Policy())
    servers.append(StdServers(backing, AT))
    return servers[0]


class NoGuesses(SpeculatedRuns):
    """No guess was run, so an opinion is of none."""

    @override
    async def add(self, scope: Scope, workflow_id: UUID, principal: str, at: datetime) -> None:
        raise NotImplementedError

    @override
    async def judge(self, scope: Scope, workflow_id: UUID, opinion: Opinion) -> None:
        """Store nothing."""

    @override
    async def since(self, scope: Scope, at: datetime) -> Sequence[SpeculatedRun]:
        return ()

    @override
    async def forget(self, before: datetime) -> None:
        raise NotImplementedError


class Silent(QueryClient):
    """Never answers, whatever the timeout."""

    @override
    async def request(self, query_type: object, query: object, *, timeout: float = 5.0) -> Any:
        await asyncio.Event().wait()
