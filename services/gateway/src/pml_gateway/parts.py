"""What handlers and routes of the gateway share, put together."""

from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from pml_common.bus.port import Bus
from pml_common.health import Checks, Readiness
from pml_common.service import clock_check
from pml_common.signing import SigningKey
from pml_gateway.adapters.bus.capability_names import CachedCapabilityNames
from pml_gateway.adapters.bus.outbox_relay import OutboxRelay
from pml_gateway.adapters.bus.results import BusResults
from pml_gateway.adapters.bus.retrying_query_client import RetryingQueryClient
from pml_gateway.adapters.bus.watch import BusWatch
from pml_gateway.adapters.disk_space import MIB, DiskSpace
from pml_gateway.adapters.memory.notifier import MemoryNotifier
from pml_gateway.adapters.policy_file import PolicyFile
from pml_gateway.adapters.stores import Stores
from pml_gateway.application.admission import Admission
from pml_gateway.application.agents import Agents
from pml_gateway.application.cached_results import ResultCache
from pml_gateway.application.execute import Executions
from pml_gateway.application.runs import Runs
from pml_gateway.application.tool_calls import ToolCalls
from pml_gateway.entrypoints.http.events import EventStreams
from pml_gateway.ports import KnownTools
from pml_gateway.settings import GatewaySettings


@dataclass(frozen=True)
class Parts:
    """What handlers and routes share."""

    settings: GatewaySettings
    bus: Bus
    watch: BusWatch
    stores: Stores
    tools: KnownTools
    checks: Checks
    calls: ToolCalls
    relay: OutboxRelay
    notifier: MemoryNotifier
    runs: Runs
    names: CachedCapabilityNames
    policies: PolicyFile
    executions: Executions
    readiness: Readiness = field(default_factory=Readiness)
    streams: EventStreams = field(default_factory=EventStreams)

    @property
    def agents(self) -> Agents:
        """What REST and MCP offer alike."""
        return Agents(self.executions, self.tools)


def assemble(
    settings: GatewaySettings,
    bus: Bus,
    stores: Stores,
    tools: KnownTools,
    checks: Checks,
    instance: UUID,
    key: SigningKey,
) -> Parts:
    """Everything put together, nothing started; `instance` is this process, which
    signs grants with `key`."""
    rules = settings.rules(key)
    watch, names, notifier = BusWatch(bus), CachedCapabilityNames(bus), MemoryNotifier()
    relay, runs = OutboxRelay(stores.outbox, bus), Runs(stores.workflows)
    room = DiskSpace(settings.gateway_data_folders, settings.gateway_min_free_mib * MIB)
    policies = PolicyFile(settings.gateway_policy_file, settings.gateway_policy)
    return Parts(
        settings=settings,
        bus=bus,
        watch=watch,
        stores=stores,
        tools=tools,
        checks={
            "nats": watch.check,
            "clock": clock_check(bus.now),
            **checks,
            "disk": room.check,
        },
        calls=ToolCalls(tools, stores.ledger, instance, runs, policies.of, bus.now),
        relay=relay,
        notifier=notifier,
        runs=runs,
        names=names,
        policies=policies,
        executions=Executions(
            workflows=stores.workflows,
            relay=relay,
            notifier=notifier,
            admission=Admission(settings.bounds, stores.workflows),
            runs=runs,
            names=names,
            cache=ResultCache(
                memoized=BusResults(bus, bus.now),
                lasting=stores.results,
                workflows=stores.workflows,
                tools=tools,
                query_client=bus,
                policy_of=policies.of,
                now=bus.now,
            ),
            query_client=RetryingQueryClient(bus, settings.gateway_owner_patience_s),
            policy_of=policies.of,
            terms=settings.terms,
            rules=rules,
            now=bus.now,
            require_bus=partial(_require, watch, room),
        ),
    )


async def _require(watch: BusWatch, room: DiskSpace) -> None:
    """Raise BusUnavailable or Unavailable where new work could not be seen to its end."""
    room.require()
    await watch.require()
