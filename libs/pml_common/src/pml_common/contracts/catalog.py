"""The message catalog: every message and query, its owner, and its consumers.

Subjects, streams, durable consumers, permissions, example payloads, exported schemas and
docs/messages.md are all derived from it. `MESSAGES`, `QUERIES` and `CONSUMERS` hold the entries in
the order in which they are declared here.
"""
# long on purpose: one table, read as a whole, with the types of its entries

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pml_common.contracts import (
    acceptance,
    analyzer,
    client_sessions,
    curation,
    dependencies,
    direct_call,
    dns,
    executor,
    gateway,
    learner,
    merging,
    registry,
    search_index,
    uses,
)
from pml_common.contracts.base import Command, Contract, Message, Query, Signal
from pml_common.contracts.capability import CapabilityRecord

Service = Literal["gateway", "analyzer", "executor", "learner", "registry"]
SERVICES: tuple[Service, ...] = ("gateway", "analyzer", "executor", "learner", "registry")

M_co = TypeVar("M_co", bound=Message, covariant=True)
Q_co = TypeVar("Q_co", bound=Query, covariant=True)
R_co = TypeVar("R_co", bound=Contract, covariant=True)


@dataclass(frozen=True)
class MessageType(Generic[M_co]):
    """One type of published messages: `name` is the event or the verb-noun in its subject. An event
    is published by its owner, a command by the service `sent_by`; the server refuses it from any
    other. Messages that decide what runs, what it may do and how it ended are also `signed`: they
    are accepted for their signature alone. One that is kept `until_handled` is stored until each of
    its consumers has handled it, instead of for days."""

    owner: Service
    name: str
    model: type[M_co]
    description: str = ""
    version: int = 1
    sent_by: Service | None = None
    signed: bool = True
    until_handled: bool = False

    @property
    def is_fenced(self) -> bool:
        """Whether each message is stored only if it follows the one that it names."""
        return issubclass(self.model, executor.JournalAppend)

    @property
    def sender(self) -> Service:
        """The one service that may publish it."""
        return self.sent_by or self.owner

    @property
    def is_stored(self) -> bool:
        """Whether a stream keeps its messages: not those of signals."""
        return not issubclass(self.model, Signal)

    @property
    def kind(self) -> Literal["evt", "cmd", "run", "sig"]:
        """Second token of the subject: `run` where a message is stored only until each of its
        consumers has handled it, `sig` where it is not stored."""
        if self.until_handled:
            return "run"
        if not self.is_stored:
            return "sig"
        return "cmd" if issubclass(self.model, Command) else "evt"


@dataclass(frozen=True)
class QueryType(Generic[Q_co, R_co]):
    """One type of queries to `owner`, the `clients` that may send them, and the reply's model. A
    query is accepted only from its clients, a reply only from its owner: each proves who it is by
    a MAC, and that of the reply binds it to the query. A `scoped` one is served for some scopes by
    some replicas: its subject ends with its scope."""

    owner: Service
    name: str
    model: type[Q_co]
    reply: type[R_co]
    description: str = ""
    version: int = 1
    clients: tuple[Service, ...] = ()
    scoped: bool = False


LONGEST_RUN_S = 3900.0
"""A run may take an hour; its command is acknowledged at its end."""
WHILE_STORED = 50_000
"""More deliveries than one message has in the week for which its stream keeps it."""


@dataclass(frozen=True, kw_only=True)
class DeliveryOptions:
    """Delivery settings of a durable consumer.

    A message is redelivered after `ack_wait_s` without a sign of life from its replica, which
    extends the wait while it works; `retry_delays_s` spaces the retries, its last value repeats.
    The message is dead-lettered after `max_deliver` deliveries (an hour of outage), or at delivery
    `max_failures` if that one fails with an unexpected error. `max_in_flight` bounds the messages
    that one replica handles concurrently. A consumer whose oldest message is the same for
    `stalls_after_s` is reported as unhealthy.

    Messages of a consumer `in_scope` wait for a replica that serves their scope: any number of
    them, and however often others were handed them; what counts is how often each replica failed.
    """

    ack_wait_s: float = 10.0
    max_deliver: int = 250
    max_failures: int = 8
    retry_delays_s: tuple[float, ...] = (0.2, 1.0, 5.0, 15.0)
    max_in_flight: int = 16
    stalls_after_s: float = 300.0
    in_scope: bool = False


@dataclass(frozen=True)
class Batch:
    """Bounds of a batch: at most `most` messages; while messages are frequent, they are fetched
    once in `within_s` seconds, while they are rare, each is handled as it comes."""

    most: int = 200
    within_s: float = 0.1


@dataclass(frozen=True)
class Consumer(DeliveryOptions, Generic[M_co]):
    """A durable consumer: each message goes to one replica of `service`, at least once; with a
    `batch`, several are handled together."""

    service: Service
    message: MessageType[M_co]
    description: str = ""
    batch: Batch | None = None

    @property
    def durable(self) -> str:
        """Name on the server."""
        return f"{self.service}-on-{self.message.name}"


@dataclass(frozen=True)
class DeadLetterConsumer(DeliveryOptions):
    """The durable consumer of the dead letters of all other consumers."""

    service: Service

    @property
    def durable(self) -> str:
        """Name on the server."""
        return f"{self.service}-on-dead-letter"


EXECUTION_REQUESTED = MessageType(
    "gateway",
    "execution-requested",
    gateway.ExecutionRequested,
    "A workflow was accepted and stored.",
)
WORKFLOW_ACCEPTED = MessageType(
    "gateway",
    "workflow-accepted",
    acceptance.WorkflowAccepted,
    "A workflow was accepted and its run begins: acceptance and run command in one.",
    until_handled=True,
)
APPROVAL_REQUESTED = MessageType(
    "gateway",
    "approval-requested",
    gateway.ApprovalRequested,
    "A workflow waits for a person's approval.",
)
APPROVAL_DECIDED = MessageType(
    "gateway",
    "approval-decided",
    gateway.ApprovalDecided,
    "An approval was decided by a person, or expired.",
)
WORKFLOW_FINISHED = MessageType(
    "gateway",
    "workflow-finished",
    gateway.WorkflowFinished,
    "A workflow ended without the end of a run, with its error.",
    signed=False,
)
WORKFLOW_DATA_DELETED = MessageType(
    "gateway",
    "workflow-data-deleted",
    gateway.WorkflowDataDeleted,
    "A caller deleted the data of a workflow.",
)
PRINCIPAL_DATA_DELETED = MessageType(
    "gateway",
    "principal-data-deleted",
    gateway.PrincipalDataDeleted,
    "The data of a principal was deleted on request.",
)
CALL_ENDED = MessageType(
    "gateway",
    "call-ended",
    direct_call.CallEnded,
    "A direct call of a tool, which the gateway made itself, ended.",
)
TOOLS_LISTED = MessageType(
    "gateway",
    "tools-listed",
    gateway.ToolsListed,
    "An MCP server listed its tools.",
)
OUTPUTS_OBSERVED = MessageType(
    "gateway",
    "outputs-observed",
    gateway.OutputsObserved,
    "Results of tools without an output schema showed new types.",
)
CLIENT_MESSAGE = MessageType(
    "gateway",
    "client-message",
    client_sessions.ClientMessage,
    "An MCP client said something that another replica may wait for.",
)
SESSION_ENDED = MessageType(
    "gateway",
    "session-ended",
    client_sessions.SessionEnded,
    "An MCP client ended its session.",
)
WORKFLOW_AWAITED = MessageType(
    "gateway",
    "workflow-awaited",
    gateway.WorkflowAwaited,
    "A caller joins a workflow, asks whether others wait for it, or does.",
)
EXECUTION_ANALYZED = MessageType(
    "analyzer",
    "execution-analyzed",
    analyzer.ExecutionAnalyzed,
    "A program was analysed: its structure, decision and instrumented code.",
)
ANALYSIS_REJECTED = MessageType(
    "analyzer",
    "analysis-rejected",
    analyzer.AnalysisRejected,
    "A program cannot run, with diagnostics.",
)
RUN_WORKFLOW = MessageType(
    "executor",
    "run-workflow",
    executor.RunWorkflow,
    "Run an instrumented program under a grant.",
    sent_by="gateway",
    version=2,
)
CANCEL_RUN = MessageType(
    "executor",
    "cancel-run",
    executor.CancelRun,
    "Cancel a run in any state.",
    sent_by="gateway",
    version=2,
)
TRACE_RECORDED = MessageType(
    "executor",
    "trace-recorded",
    executor.TraceRecorded,
    "One append to a run's journal.",
    version=2,
)
WORKFLOW_PARKED = MessageType(
    "executor",
    "workflow-parked",
    executor.WorkflowParked,
    "A run waits for a person to approve a call, without a process: its journal's last append.",
    version=3,
)
RUN_FINISHED = MessageType(
    "executor",
    "run-finished",
    executor.RunFinished,
    "A run ended, with its result, executed path and tool calls: its journal's last append.",
    version=2,
)
LEARNING_UPDATED = MessageType(
    "learner",
    "learning-updated",
    learner.LearningUpdated,
    "The learned statistics of a capability changed.",
    signed=False,
)
EDGES_OBSERVED = MessageType(
    "learner",
    "edges-observed",
    learner.EdgesObserved,
    "Runs showed relations between tools and capabilities.",
    signed=False,
)
USES_OBSERVED = MessageType(
    "learner",
    "uses-observed",
    uses.UsesObserved,
    "Runs showed which tools and capabilities served which intents.",
    signed=False,
)
USE_JUDGED = MessageType(
    "learner",
    "use-judged",
    uses.UseJudged,
    "A principal said whether a workflow's run was useful.",
    signed=False,
)
CAPABILITY_CHANGED = MessageType(
    "registry",
    "capability-changed",
    registry.CapabilityChanged,
    "A capability's record changed, was first listed, or has new statistics.",
    signed=False,
    version=2,
)
CATALOG_CHANGED = MessageType(
    "registry",
    "catalog-changed",
    registry.CatalogChanged,
    "A server's tools changed in the tool catalog.",
)
GRAPH_CHANGED = MessageType(
    "registry",
    "graph-changed",
    dependencies.GraphChanged,
    "The graph of a scope changed.",
    signed=False,
)

CALL_TOOL = QueryType(
    "gateway",
    "call-tool",
    gateway.CallTool,
    gateway.ToolOutcome,
    "Make one tool call of a run, at most once if it is not repeatable.",
    clients=("executor",),
    version=3,
    scoped=True,
)
ASK_OUTCOME = QueryType(
    "gateway",
    "ask-outcome",
    gateway.AskOutcome,
    gateway.WorkflowOutcome,
    "Tell whether a workflow was accepted, and how it ended.",
    clients=("registry",),
)
ANALYZE = QueryType(
    "analyzer",
    "analyze",
    analyzer.AnalyzeProgram,
    analyzer.ProgramAnalysis,
    "Analyse a program before its request is stored, and decide on it under the policy.",
    clients=("gateway",),
)
LIST_TRACES = QueryType(
    "learner",
    "list-traces",
    learner.ListTraces,
    learner.TracePage,
    "List the traces of a capability, workflow or intent, newest first or by priority.",
    clients=("gateway",),
)
FIND_TRACE = QueryType(
    "learner",
    "find-trace",
    learner.FindTrace,
    learner.ExecutionTrace,
    "Find one trace by its id.",
    clients=("gateway",),
)
REBUILD_LEARNING = QueryType(
    "learner",
    "rebuild-learning",
    learner.RebuildLearning,
    learner.RebuildProgress,
    "Recompute a bounded part of what capabilities learned, from their traces.",
    clients=("gateway",),
)
LIST_TOOL_USAGE = QueryType(
    "learner",
    "list-tool-usage",
    learner.ListToolUsage,
    learner.ToolUsagePage,
    "List how often tools and named capabilities were called.",
    clients=("gateway",),
)
GIVE_FEEDBACK = QueryType(
    "learner",
    "give-feedback",
    learner.GiveFeedback,
    learner.Feedback,
    "Store whether the run of a workflow was useful.",
    clients=("gateway",),
)
LIST_FEEDBACK = QueryType(
    "learner",
    "list-feedback",
    learner.ListFeedback,
    learner.FeedbackPage,
    "List how useful the runs of capabilities were found.",
    clients=("gateway",),
)
RESOLVE_CAPABILITY = QueryType(
    "registry",
    "resolve-capability",
    registry.ResolveCapability,
    CapabilityRecord,
    "Find one capability by name or id.",
    clients=("gateway",),
    version=2,
)
RESERVE_NAME = QueryType(
    "registry",
    "reserve-name",
    registry.ReserveName,
    registry.ReservedName,
    "Reserve a capability's name before its program runs.",
    clients=("gateway",),
)
SETTLE_NAME = QueryType(
    "registry",
    "settle-name",
    registry.SettleName,
    registry.SettledName,
    "Give a reserved name to its capability, or release it.",
    clients=("gateway",),
)
SET_CACHE_POLICY = QueryType(
    "registry",
    "set-cache-policy",
    registry.SetCachePolicy,
    CapabilityRecord,
    "Set whether results of a capability are cached, as its owner or an admin.",
    clients=("gateway",),
    version=3,
)
DESCRIBE_CAPABILITIES = QueryType(
    "registry",
    "describe-capabilities",
    registry.DescribeCapabilities,
    registry.CapabilityDescriptions,
    "Find the capabilities that programs refer to.",
    clients=("analyzer", "gateway"),
    version=2,
)
LIST_CAPABILITIES = QueryType(
    "registry",
    "list-capabilities",
    registry.ListCapabilities,
    registry.CapabilityPage,
    "List the capabilities of a scope, the most used first.",
    clients=("gateway",),
    version=2,
)
LOOKUP_RECORD = QueryType(
    "registry",
    "lookup-record",
    dns.LookupRecord,
    dns.ResolvedName,
    "Resolve a reference to a record and version that the principal may see.",
    clients=("gateway",),
)
WHOIS_RECORD = QueryType(
    "registry",
    "whois-record",
    dns.WhoisRecord,
    dns.Whois,
    "Read all that is known of a record.",
    clients=("gateway",),
)
QUERY_RECORDS = QueryType(
    "registry",
    "query-records",
    dns.QueryRecords,
    dns.RecordPage,
    "Find records by owner, tags, visibility, namespace, version or text.",
    clients=("gateway",),
)
READ_HISTORY = QueryType(
    "registry",
    "read-history",
    dns.ReadHistory,
    dns.History,
    "Read the changes of a record, with diffs.",
    clients=("gateway",),
)
CHANGE_RECORD = QueryType(
    "registry",
    "change-record",
    dns.ChangeRecord,
    dns.ChangedRecord,
    "Rename, tag, yank, publish, transfer or fork a record.",
    clients=("gateway",),
)
DESCRIBE_RECORD = QueryType(
    "registry",
    "describe-record",
    dns.DescribeRecord,
    dns.ChangedRecord,
    "Say what a version of a record is for.",
    clients=("gateway",),
)
PLAN_MERGE = QueryType(
    "registry",
    "plan-merge",
    merging.PlanMerge,
    merging.MergePlan,
    "Build a program that passes the result of each capability to the next, if they fit.",
    clients=("gateway",),
)
MERGE_CAPABILITIES = QueryType(
    "registry",
    "merge-capabilities",
    merging.MergeCapabilities,
    dns.ChangedRecord,
    "Register the analysed program of a merge under a name.",
    clients=("gateway",),
)
CURATE = QueryType(
    "registry",
    "curate",
    curation.Curate,
    curation.Curation,
    "Suggest or give names to capabilities that have none.",
    clients=("gateway",),
)
LIFT_CAPABILITY = QueryType(
    "registry",
    "lift-capability",
    curation.LiftCapability,
    curation.LiftedCapability,
    "Make one program of capabilities that differ by literals alone.",
    clients=("gateway",),
)
SAVE_CAPABILITY = QueryType(
    "registry",
    "save-capability",
    curation.SaveCapability,
    curation.SavedCapability,
    "Name the program of a workflow or a capability that has succeeded.",
    clients=("gateway",),
)
LIST_TOOLS = QueryType(
    "registry",
    "list-tools",
    registry.ListTools,
    registry.ToolCatalog,
    "List the tool catalog of a scope.",
    clients=("analyzer", "gateway"),
)
DISCOVER = QueryType(
    "registry",
    "discover",
    registry.Discover,
    registry.DiscoveryPage,
    "Rank tools and capabilities by their match with an intent.",
    clients=("gateway",),
)
SHOW_EVIDENCE = QueryType(
    "registry",
    "show-evidence",
    uses.ShowEvidence,
    uses.EvidenceState,
    "Show whether rankings use what was learned from use, and by how much that is better.",
    clients=("gateway",),
)
SHOW_INDEX = QueryType(
    "registry",
    "show-index",
    search_index.ShowIndex,
    search_index.IndexState,
    "Show the state of the vector index.",
    clients=("gateway",),
)
REINDEX = QueryType(
    "registry",
    "reindex",
    search_index.Reindex,
    search_index.IndexState,
    "Rebuild the vector index in the background.",
    clients=("gateway",),
)
ADD_DEPENDENCY = QueryType(
    "registry",
    "add-dependency",
    dependencies.AddDependency,
    dependencies.AddedDependency,
    "Add a dependency of one capability on another.",
    clients=("gateway",),
)
REMOVE_DEPENDENCY = QueryType(
    "registry",
    "remove-dependency",
    dependencies.RemoveDependency,
    dependencies.RemovedDependencies,
    "Remove dependencies of one capability on another.",
    clients=("gateway",),
)
LIST_DEPENDENCIES = QueryType(
    "registry",
    "list-dependencies",
    dependencies.ListDependencies,
    dependencies.DependencyPage,
    "List the dependencies of a capability, and those of others on it.",
    clients=("gateway",),
)
SHOW_HYPERGRAPH = QueryType(
    "registry",
    "show-hypergraph",
    dependencies.ShowHypergraph,
    dependencies.Hypergraph,
    "Show the graph of a scope's tools and capabilities.",
    clients=("gateway",),
)
FIND_PATH = QueryType(
    "registry",
    "find-path",
    dependencies.FindPath,
    dependencies.GraphPath,
    "Find the shortest path between two tools or capabilities.",
    clients=("gateway",),
)

ANALYZER_ON_EXECUTION_REQUESTED = Consumer(
    "analyzer", EXECUTION_REQUESTED, "Analyses the program and decides on it under the policy."
)
REGISTRY_ON_EXECUTION_ANALYZED = Consumer(
    "registry", EXECUTION_ANALYZED, "Stores the program as a capability.", Batch()
)
REGISTRY_ON_LEARNING_UPDATED = Consumer(
    "registry", LEARNING_UPDATED, "Stores the statistics and lists the capability.", Batch()
)
REGISTRY_ON_EDGES_OBSERVED = Consumer(
    "registry",
    EDGES_OBSERVED,
    "Counts the relations between tools and capabilities.",
    Batch(),
)
REGISTRY_ON_USES_OBSERVED = Consumer(
    "registry",
    USES_OBSERVED,
    "Keeps what served which intents, and judges whether rankings use it.",
    ack_wait_s=60.0,
    max_in_flight=2,
)
REGISTRY_ON_USE_JUDGED = Consumer(
    "registry", USE_JUDGED, "Weighs what the run showed by the opinions of it."
)
REGISTRY_ON_WORKFLOW_DATA_DELETED = Consumer(
    "registry",
    WORKFLOW_DATA_DELETED,
    "Removes the workflow's intent, and keeps none that comes later.",
)
REGISTRY_ON_CAPABILITY_CHANGED = Consumer(
    "registry",
    CAPABILITY_CHANGED,
    "Relates a newly listed capability to others by tools and intent.",
    Batch(),
)
REGISTRY_ON_CATALOG_CHANGED = Consumer(
    "registry",
    CATALOG_CHANGED,
    "Computes which tools can feed which others.",
    ack_wait_s=60.0,
    max_in_flight=1,
)
REGISTRY_ON_TOOLS_LISTED = Consumer(
    "registry",
    TOOLS_LISTED,
    "Updates the tool catalog.",
    ack_wait_s=30.0,
    max_in_flight=2,
)
REGISTRY_ON_OUTPUTS_OBSERVED = Consumer(
    "registry", OUTPUTS_OBSERVED, "Widens the learned output schemas of tools.", max_in_flight=2
)
GATEWAY_ON_EXECUTION_ANALYZED = Consumer(
    "gateway",
    EXECUTION_ANALYZED,
    "Starts the run, requests an approval, or denies the workflow.",
    max_deliver=WHILE_STORED,
    in_scope=True,
)
GATEWAY_ON_WORKFLOW_ACCEPTED = Consumer(
    "gateway",
    WORKFLOW_ACCEPTED,
    "Stores the workflow.",
    Batch(),
    # The only copy of a workflow until it is stored: retried for as long as its stream keeps it.
    max_deliver=WHILE_STORED,
    max_failures=WHILE_STORED,
)
GATEWAY_ON_ANALYSIS_REJECTED = Consumer(
    "gateway",
    ANALYSIS_REJECTED,
    "Ends the workflow with the diagnostics.",
    max_deliver=WHILE_STORED,
    in_scope=True,
)
GATEWAY_ON_WORKFLOW_PARKED = Consumer(
    "gateway",
    WORKFLOW_PARKED,
    "Requests an approval of all calls that wait, or of a layer.",
    max_deliver=WHILE_STORED,
    in_scope=True,
)
GATEWAY_ON_RUN_FINISHED = Consumer(
    "gateway", RUN_FINISHED, "Ends the workflow with the run's outcome.", Batch()
)
GATEWAY_ON_CALL_ENDED = Consumer(
    "gateway", CALL_ENDED, "Stores the workflow of the call, with its end.", Batch()
)
EXECUTOR_ON_RUN_WORKFLOW = Consumer(
    "executor",
    RUN_WORKFLOW,
    "Runs the program in a sandbox, or resumes its journal.",
    ack_wait_s=5.0,
    max_deliver=20,
    max_in_flight=8,
    stalls_after_s=LONGEST_RUN_S,
)
EXECUTOR_ON_WORKFLOW_ACCEPTED = Consumer(
    "executor",
    WORKFLOW_ACCEPTED,
    "Runs the program, as at a run command.",
    ack_wait_s=5.0,
    max_deliver=20,
    max_in_flight=8,
    stalls_after_s=LONGEST_RUN_S,
)
EXECUTOR_ON_CANCEL_RUN = Consumer("executor", CANCEL_RUN, "Closes the run's journal as cancelled.")
LEARNER_ON_RUN_FINISHED = Consumer(
    "learner", RUN_FINISHED, "Stores the traces and learns from them.", Batch()
)
LEARNER_ON_CALL_ENDED = Consumer(
    "learner", CALL_ENDED, "Stores the trace, and learns nothing from it.", Batch()
)
LEARNER_ON_WORKFLOW_DATA_DELETED = Consumer(
    "learner",
    WORKFLOW_DATA_DELETED,
    "Deletes the traces of the workflow, and keeps none that come later.",
)
LEARNER_ON_PRINCIPAL_DATA_DELETED = Consumer(
    "learner",
    PRINCIPAL_DATA_DELETED,
    "Deletes the principal's traces and opinions; what was learned stays.",
)
GATEWAY_ON_DEAD_LETTER = DeadLetterConsumer("gateway", max_in_flight=4)


def _declared(kind: type[object]) -> tuple[Any, ...]:
    """Return the entries of one kind in this module, in the order of declaration."""
    return tuple(value for value in globals().values() if isinstance(value, kind))


MESSAGES: tuple[MessageType[Message], ...] = _declared(MessageType)
QUERIES: tuple[QueryType[Query, Contract], ...] = _declared(QueryType)
CONSUMERS: tuple[Consumer[Message], ...] = _declared(Consumer)

LISTENERS: tuple[tuple[Service, MessageType[Message]], ...] = (
    ("gateway", WORKFLOW_FINISHED),
    ("gateway", APPROVAL_REQUESTED),
    ("gateway", CAPABILITY_CHANGED),
    ("gateway", RUN_FINISHED),
    ("gateway", CALL_ENDED),
    ("gateway", CANCEL_RUN),
    ("gateway", TOOLS_LISTED),
    ("gateway", CLIENT_MESSAGE),
    ("gateway", SESSION_ENDED),
    ("gateway", WORKFLOW_AWAITED),
    ("analyzer", CATALOG_CHANGED),
    ("analyzer", CAPABILITY_CHANGED),
    ("registry", CAPABILITY_CHANGED),
    ("registry", GRAPH_CHANGED),
    ("executor", CANCEL_RUN),
)
"""The plain subscriptions: every replica of the service gets the message, at most once."""

STREAM_READERS: tuple[tuple[Service, Service], ...] = (
    *(("gateway", owner) for owner in SERVICES),
    ("executor", "executor"),
)
"""The services that read an owner's stored events; the gateway also follows them live, for its
callers."""

_TYPES: dict[type[Message], MessageType[Message]] = {entry.model: entry for entry in MESSAGES}


def type_of(message: Message) -> MessageType[Message]:
    """Return the catalog entry of a message. Raises KeyError for a model that is not listed."""
    return _TYPES[type(message)]
