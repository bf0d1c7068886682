"""Components that handlers and routes of the gateway share, and their assembly."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from uuid import UUID

from pml_common.bus.port import Bus
from pml_common.contracts.decision import Policy
from pml_common.contracts.scope import Scope
from pml_common.health import Checks, Readiness
from pml_common.service import clock_check
from pml_common.signing import SigningKey
from pml_gateway.adapters.bus.analyses import BusAnalyses
from pml_gateway.adapters.bus.capability_names import CachedCapabilityNames
from pml_gateway.adapters.bus.open_inputs import BusOpenInputs
from pml_gateway.adapters.bus.outbox_relay import OutboxRelay
from pml_gateway.adapters.bus.replicas import BusReplicas
from pml_gateway.adapters.bus.results import BusResults
from pml_gateway.adapters.bus.retrying_query_client import RetryingQueryClient
from pml_gateway.adapters.bus.watch import BusWatch
from pml_gateway.adapters.disk_space import MIB, DiskSpace
from pml_gateway.adapters.live_workflows import LiveWorkflows
from pml_gateway.adapters.local_notifier import LocalNotifier
from pml_gateway.adapters.policy_file import PolicyFile
from pml_gateway.adapters.stores import Stores
from pml_gateway.application.admission import Admission
from pml_gateway.application.agents import Agents
from pml_gateway.application.cached_results import ResultCache
from pml_gateway.application.callers_elsewhere import CallersElsewhere
from pml_gateway.application.cancel import Cancellations, Withdrawals
from pml_gateway.application.composing import Composing
from pml_gateway.application.decide import Decisions
from pml_gateway.application.delete_data import Deletions
from pml_gateway.application.delete_principal import PrincipalData
from pml_gateway.application.direct_calls import DirectCalls
from pml_gateway.application.elicit import Elicitations
from pml_gateway.application.execute import Execution
from pml_gateway.application.execute_by_name import CapabilityExecution
from pml_gateway.application.execute_program import ProgramExecution
from pml_gateway.application.first_step import FirstStep
from pml_gateway.application.progress import ProgressReports
from pml_gateway.application.quarantine import Acceptance
from pml_gateway.application.read_traces import Traces
from pml_gateway.application.results import Results
from pml_gateway.application.rulings import Rulings
from pml_gateway.application.run_cache import RunCache
from pml_gateway.application.speculation import Speculation
from pml_gateway.application.speculation_learning import SpeculationLearning
from pml_gateway.application.suggestions import Suggestions
from pml_gateway.application.task_inputs import TaskInputs
from pml_gateway.application.tool_calls import ToolCalls
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.application.workflow_tasks import WorkflowTasks
from pml_gateway.entrypoints.http.app import UseCases
from pml_gateway.entrypoints.http.events import EventStreams
from pml_gateway.ports import ConfiguredServers, KnownTools
from pml_gateway.settings import GatewaySettings


@dataclass(frozen=True)
class Parts:
    """Components of one gateway."""

    settings: GatewaySettings
    bus: Bus
    watch: BusWatch
    stores: Stores
    live: LiveWorkflows
    tools: KnownTools
    acceptance: Acceptance
    checks: Checks
    calls: ToolCalls
    relay: OutboxRelay
    notifier: LocalNotifier
    runs: RunCache
    names: CachedCapabilityNames
    policies: PolicyFile
    admission: Admission
    workflows: WorkflowService
    rulings: Rulings
    programs: ProgramExecution
    direct: DirectCalls
    withdrawals: Withdrawals
    replicas: BusReplicas
    elsewhere: CallersElsewhere
    use_cases: UseCases
    readiness: Readiness = field(default_factory=Readiness)
    streams: EventStreams = field(default_factory=EventStreams)


def assemble(
    settings: GatewaySettings,
    bus: Bus,
    stores: Stores,
    tools: KnownTools,
    acceptance: Acceptance,
    configured: ConfiguredServers,
    checks: Checks,
    instance: UUID,
    key: SigningKey,
) -> Parts:
    """Build every component and start none; `instance` is the id of this process, `key` signs its
    grants."""
    live = LiveWorkflows(stores.workflows, bus)
    stores = replace(stores, workflows=live)
    watch, names, notifier = BusWatch(bus), CachedCapabilityNames(bus), LocalNotifier()
    relay, runs = OutboxRelay(stores.outbox, bus), RunCache(stores.workflows)
    room = DiskSpace(settings.gateway_data_folders, settings.gateway_min_free_mib * MIB)
    policies = PolicyFile(settings.gateway_policy_file, settings.gateway_policy)
    admission = Admission(settings.bounds, stores.workflows)
    terms, rules, now = settings.terms, settings.rules(key), bus.now
    workflows = WorkflowService(live, relay, notifier, runs, names, terms, rules)
    ready = partial(_require_ready, watch, room)
    rulings = Rulings(tools, policies.of, names, now)
    analyses = BusAnalyses(bus, tools.find, max_age_s=settings.gateway_analysis_max_age_s)
    first = FirstStep(workflows, analyses, rulings)
    cancellations = Cancellations(workflows, now)
    replicas = BusReplicas(bus, instance)
    elsewhere = CallersElsewhere(replicas, notifier, instance)
    withdrawals = Withdrawals(cancellations, elsewhere)
    programs = ProgramExecution(
        workflows,
        first,
        admission,
        policies.of,
        terms,
        rules,
        now,
        ready,
        ProgressReports(bus.follow),
        withdrawals,
        elsewhere,
    )
    calls = ToolCalls(tools, stores.ledger, instance, runs, policies.of, now, programs.callers)
    inputs = TaskInputs(BusOpenInputs(bus), workflows, now)
    direct = DirectCalls(workflows, calls, bus.publish, now, ready, withdrawals, inputs)
    return Parts(
        settings=settings,
        bus=bus,
        watch=watch,
        stores=stores,
        live=live,
        tools=tools,
        acceptance=acceptance,
        checks={"nats": watch.check, "clock": clock_check(now), **checks, "disk": room.check},
        calls=calls,
        relay=relay,
        notifier=notifier,
        runs=runs,
        names=names,
        policies=policies,
        admission=admission,
        workflows=workflows,
        rulings=rulings,
        programs=programs,
        direct=direct,
        withdrawals=withdrawals,
        replicas=replicas,
        elsewhere=elsewhere,
        use_cases=_use_cases(
            settings,
            bus,
            stores,
            tools,
            acceptance,
            configured,
            policies.of,
            programs,
            direct,
            cancellations,
        ),
    )


def _use_cases(
    settings: GatewaySettings,
    bus: Bus,
    stores: Stores,
    tools: KnownTools,
    acceptance: Acceptance,
    configured: ConfiguredServers,
    policy_of: Callable[[Scope], Policy],
    programs: ProgramExecution,
    direct: DirectCalls,
    cancellations: Cancellations,
) -> UseCases:
    now, workflows = bus.now, programs.workflows
    query_client = RetryingQueryClient(bus, settings.gateway_owner_patience_s)
    cache = ResultCache(
        memoized=BusResults(bus, now),
        persistent=stores.results,
        store=workflows.store,
        tools=tools,
        query_client=bus,
        policy_of=policy_of,
        now=now,
    )
    by_name = CapabilityExecution(workflows, programs, cache, query_client)
    suggestions = Suggestions(query_client, policy_of)
    learning = SpeculationLearning(stores.speculated, query_client, settings.threshold_rule, now)
    execution = Execution(
        workflows,
        programs,
        by_name,
        suggestions,
        Speculation(by_name, programs, suggestions, learning),
        settings.gateway_max_timeout_s,
    )
    default_timeout_s = settings.gateway_default_timeout_s
    ttl = timedelta(seconds=settings.gateway_result_ttl_s)
    kept = timedelta(days=settings.gateway_workflow_days)
    results = Results(workflows, programs.elsewhere, ttl, now)
    decisions = Decisions(workflows, stores.workflows, tools, policy_of, now)
    elicitations = Elicitations(decisions, workflows, stores.elicitation, now)
    return UseCases(
        agents=Agents(
            execution,
            direct,
            query_client,
            tools,
            policy_of,
            default_timeout_s,
            results,
            cancellations,
            now,
            elicitations,
        ),
        cancellations=cancellations,
        deletions=Deletions(workflows, now),
        principals=PrincipalData(workflows, stores.deletions, bus.publish, now),
        decisions=decisions,
        elicitations=elicitations,
        tasks=WorkflowTasks(workflows, elicitations, cancellations, BusOpenInputs(bus)),
        cache=cache,
        workflows=workflows,
        store=stores.workflows,
        tools=tools,
        acceptance=acceptance,
        configured=configured,
        query_client=query_client,
        composed=Composing(query_client, stores.workflows, policy_of, now),
        speculations=learning,
        traces=Traces(query_client, stores.workflows, ttl, kept, now),
    )


async def _require_ready(watch: BusWatch, room: DiskSpace) -> None:
    """Raise BusUnavailable or Unavailable where new work could not be finished."""
    room.require()
    await watch.require()
