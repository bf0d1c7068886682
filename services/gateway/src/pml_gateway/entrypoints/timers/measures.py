"""Measurements of executions in flight, MCP servers, and the rows that wait."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

from pml_common.background import background, run_periodically
from pml_common.storage.scoped import ScopedPools
from pml_common.telemetry import metrics
from pml_common.telemetry.instruments import Gauge, Values
from pml_gateway.adapters.postgres.backlog import LOOK_EVERY_S, measure_backlog
from pml_gateway.application.admission import Admission
from pml_gateway.ports import ServerStatus, ToolServers

_in_flight = Gauge(metrics.EXECUTIONS_IN_FLIGHT)
_servers = Gauge(metrics.MCP_SERVERS)


@asynccontextmanager
async def measured(
    admission: Admission, servers: ToolServers, pools: ScopedPools
) -> AsyncGenerator[None]:
    """Measure until the context exits."""

    def states() -> dict[Values, float]:
        return {(name, _state(each)): 1 for name, each in servers.status().items()}

    with (
        _in_flight.reading(lambda: {(): admission.in_flight}),
        _servers.reading(states),
    ):
        async with background([run_periodically(partial(measure_backlog, pools), LOOK_EVERY_S)]):
            yield


def _state(server: ServerStatus) -> str:
    refuses = server.state == "ready" and server.circuit != "closed"
    return "refusing" if refuses else server.state
