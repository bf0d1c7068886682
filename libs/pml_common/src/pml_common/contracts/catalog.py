"""The catalogue: every message, its owner, and who consumes it how.

Subjects, streams, durable consumers, example payloads and exported schemas all follow from here.
"""

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from pml_common.contracts import analyzer, executor, gateway, learner, registry
from pml_common.contracts.base import Command, Contract, Event, Message, Query
from pml_common.contracts.capability import CapabilityRecord

Service = Literal["gateway", "analyzer", "executor", "learner", "registry"]
SERVICES: tuple[Service, ...] = ("gateway", "analyzer", "executor", "learner", "registry")

M_co = TypeVar("M_co", bound=Message, covariant=True)
Q_co = TypeVar("Q_co", bound=Query, covariant=True)
R_co = TypeVar("R_co", bound=Contract, covariant=True)


@dataclass(frozen=True)
class MessageType(Generic[M_co]):
    """One published message: `name` is the fact or the verb-noun in its subject. An event is
    published by its owner, a command by the service `sent_by`; the server lets no other. What is
    `signed` besides is believed for its signature alone: what decides what runs, what it may do and
    how it ended."""

    owner: Service
    name: str
    model: type[M_co]
    version: int = 1
    sent_by: Service | None = None
    signed: bool = True

    @property
    def sender(self) -> Service:
        """The one service that may publish it."""
        return self.sent_by or self.owner

    @property
    def kind(self) -> Literal["evt", "cmd"]:
        """Second token of the subject."""
        return "cmd" if issubclass(self.model, Command) else "evt"


@dataclass(frozen=True)
class QueryType(Generic[Q_co, R_co]):
    """One question, who may ask its owner, and the shape of the answer."""

    owner: Service
    name: str
    model: type[Q_co]
    reply: type[R_co]
    asked_by: tuple[Service, ...]
    version: int = 1


@dataclass(frozen=True, kw_only=True)
class Delivering:
    """How a durable reader is served.

    `ack_wait_s` is how long a silent replica keeps a message (a living one extends it);
    `retry_delays_s` spaces the retries, its last value repeats. The message is dead after
    `max_deliver` deliveries (an hour of outage), or at delivery `max_failures` if that one fails
    with an error nobody foresaw. `max_in_flight` bounds what one replica handles side by side.
    """

    ack_wait_s: float = 10.0
    max_deliver: int = 250
    max_failures: int = 8
    retry_delays_s: tuple[float, ...] = (0.2, 1.0, 5.0, 15.0)
    max_in_flight: int = 16


@dataclass(frozen=True)
class Consumer(Delivering, Generic[M_co]):
    """A durable reader: each message goes to one replica of `service`, at least once."""

    service: Service
    message: MessageType[M_co]

    @property
    def durable(self) -> str:
        """Name on the server."""
        return f"{self.service}-on-{self.message.name}"


EXECUTION_REQUESTED = MessageType("gateway", "execution-requested", gateway.ExecutionRequested)
APPROVAL_REQUESTED = MessageType("gateway", "approval-requested", gateway.ApprovalRequested)
APPROVAL_DECIDED = MessageType("gateway", "approval-decided", gateway.ApprovalDecided)
WORKFLOW_FINISHED = MessageType(
    "gateway", "workflow-finished", gateway.WorkflowFinished, signed=False
)
TOOLS_LISTED = MessageType("gateway", "tools-listed", gateway.ToolsListed)
EXECUTION_ANALYZED = MessageType("analyzer", "execution-analyzed", analyzer.ExecutionAnalyzed)
ANALYSIS_REJECTED = MessageType("analyzer", "analysis-rejected", analyzer.AnalysisRejected)
RUN_WORKFLOW = MessageType(
    "executor", "run-workflow", executor.RunWorkflow, version=2, sent_by="gateway"
)
CANCEL_RUN = MessageType("executor", "cancel-run", executor.CancelRun, version=2, sent_by="gateway")
TRACE_RECORDED = MessageType(
    "executor", "trace-recorded", executor.TraceRecorded, version=2, signed=False
)
WORKFLOW_PARKED = MessageType("executor", "workflow-parked", executor.WorkflowParked, version=2)
RUN_FINISHED = MessageType("executor", "run-finished", executor.RunFinished)
LEARNING_UPDATED = MessageType("learner", "learning-updated", learner.LearningUpdated, signed=False)
EDGES_OBSERVED = MessageType("learner", "edges-observed", learner.EdgesObserved, signed=False)
CAPABILITY_CHANGED = MessageType(
    "registry", "capability-changed", registry.CapabilityChanged, signed=False
)
CATALOG_CHANGED = MessageType("registry", "catalog-changed", registry.CatalogChanged)

MESSAGES: tuple[MessageType[Event] | MessageType[Command], ...] = (
    EXECUTION_REQUESTED,
    APPROVAL_REQUESTED,
    APPROVAL_DECIDED,
    WORKFLOW_FINISHED,
    TOOLS_LISTED,
    EXECUTION_ANALYZED,
    ANALYSIS_REJECTED,
    RUN_WORKFLOW,
    CANCEL_RUN,
    TRACE_RECORDED,
    WORKFLOW_PARKED,
    RUN_FINISHED,
    LEARNING_UPDATED,
    EDGES_OBSERVED,
    CAPABILITY_CHANGED,
    CATALOG_CHANGED,
)

CALL_TOOL = QueryType(
    "gateway",
    "call-tool",
    gateway.CallTool,
    gateway.ToolOutcome,
    version=2,
    asked_by=("executor",),
)
LIST_TRACES = QueryType(
    "learner", "list-traces", learner.ListTraces, learner.TracePage, asked_by=("gateway",)
)
RESOLVE_CAPABILITY = QueryType(
    "registry",
    "resolve-capability",
    registry.ResolveCapability,
    CapabilityRecord,
    asked_by=("gateway",),
)
SET_CACHE_POLICY = QueryType(
    "registry",
    "set-cache-policy",
    registry.SetCachePolicy,
    CapabilityRecord,
    asked_by=("gateway",),
)
DESCRIBE_CAPABILITIES = QueryType(
    "registry",
    "describe-capabilities",
    registry.DescribeCapabilities,
    registry.CapabilityDescriptions,
    asked_by=("analyzer", "gateway"),
)
LIST_CAPABILITIES = QueryType(
    "registry",
    "list-capabilities",
    registry.ListCapabilities,
    registry.CapabilityPage,
    asked_by=("gateway",),
)
LIST_TOOLS = QueryType(
    "registry",
    "list-tools",
    registry.ListTools,
    registry.ToolCatalog,
    asked_by=("analyzer", "gateway"),
)
DISCOVER = QueryType(
    "registry", "discover", registry.Discover, registry.DiscoveryPage, asked_by=("gateway",)
)

QUERIES: tuple[QueryType[Query, Contract], ...] = (
    CALL_TOOL,
    LIST_TRACES,
    RESOLVE_CAPABILITY,
    SET_CACHE_POLICY,
    DESCRIBE_CAPABILITIES,
    LIST_CAPABILITIES,
    LIST_TOOLS,
    DISCOVER,
)

ANALYZER_ON_EXECUTION_REQUESTED = Consumer("analyzer", EXECUTION_REQUESTED)
REGISTRY_ON_EXECUTION_ANALYZED = Consumer("registry", EXECUTION_ANALYZED)
REGISTRY_ON_LEARNING_UPDATED = Consumer("registry", LEARNING_UPDATED)
REGISTRY_ON_EDGES_OBSERVED = Consumer("registry", EDGES_OBSERVED)
REGISTRY_ON_TOOLS_LISTED = Consumer("registry", TOOLS_LISTED, ack_wait_s=30.0, max_in_flight=2)
GATEWAY_ON_EXECUTION_ANALYZED = Consumer("gateway", EXECUTION_ANALYZED)
GATEWAY_ON_ANALYSIS_REJECTED = Consumer("gateway", ANALYSIS_REJECTED)
GATEWAY_ON_WORKFLOW_PARKED = Consumer("gateway", WORKFLOW_PARKED)
GATEWAY_ON_RUN_FINISHED = Consumer("gateway", RUN_FINISHED)
EXECUTOR_ON_RUN_WORKFLOW = Consumer(
    "executor", RUN_WORKFLOW, ack_wait_s=5.0, max_deliver=20, max_in_flight=8
)
EXECUTOR_ON_CANCEL_RUN = Consumer("executor", CANCEL_RUN)
LEARNER_ON_RUN_FINISHED = Consumer("learner", RUN_FINISHED)

CONSUMERS: tuple[Consumer[Event] | Consumer[Command], ...] = (
    ANALYZER_ON_EXECUTION_REQUESTED,
    REGISTRY_ON_EXECUTION_ANALYZED,
    REGISTRY_ON_LEARNING_UPDATED,
    REGISTRY_ON_EDGES_OBSERVED,
    REGISTRY_ON_TOOLS_LISTED,
    GATEWAY_ON_EXECUTION_ANALYZED,
    GATEWAY_ON_ANALYSIS_REJECTED,
    GATEWAY_ON_WORKFLOW_PARKED,
    GATEWAY_ON_RUN_FINISHED,
    EXECUTOR_ON_RUN_WORKFLOW,
    EXECUTOR_ON_CANCEL_RUN,
    LEARNER_ON_RUN_FINISHED,
)


@dataclass(frozen=True)
class DeadLetterConsumer(Delivering):
    """The durable reader of what all other consumers gave up."""

    service: Service

    @property
    def durable(self) -> str:
        """Name on the server."""
        return f"{self.service}-on-dead-letter"


GATEWAY_ON_DEAD_LETTER = DeadLetterConsumer("gateway", max_in_flight=4)

HEARD: tuple[tuple[Service, MessageType[Event] | MessageType[Command]], ...] = (
    ("gateway", WORKFLOW_FINISHED),
    ("gateway", APPROVAL_REQUESTED),
    ("gateway", CAPABILITY_CHANGED),
    ("gateway", RUN_FINISHED),
    ("gateway", CANCEL_RUN),
    ("analyzer", CATALOG_CHANGED),
    ("analyzer", CAPABILITY_CHANGED),
    ("executor", CANCEL_RUN),
)
"""Who hears what on a plain subscription, in every replica and at most once."""

HISTORIES: tuple[tuple[Service, Service], ...] = (
    *(("gateway", owner) for owner in SERVICES),
    ("executor", "executor"),
)
"""Who reads whose stored events; the gateway also follows them live, for its callers."""

_TYPES: dict[type[Message], MessageType[Event] | MessageType[Command]] = {
    entry.model: entry for entry in MESSAGES
}


def type_of(message: Message) -> MessageType[Event] | MessageType[Command]:
    """The catalogue entry of a message; KeyError names a model that was never listed."""
    return _TYPES[type(message)]
