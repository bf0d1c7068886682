"""The metrics of all services. docs/telemetry.md lists them; tests compare it, the dashboards, the
alerts and the instruments in the code with this table."""

from typing import Final

from pml_common.telemetry import vocabulary
from pml_common.telemetry.metric import (
    COUNTS,
    LONG_SECONDS,
    Metric,
    configured,
    counter,
    gauge,
    histogram,
    one_of,
    updown,
)

QUERY_CODES = ("ok", "not_found", "invalid", "conflict", "unavailable", "internal")
CALL_STATUS = ("ok", "tool_error", "refused", "ask", "timeout", "unknown")
ERROR_KINDS = (
    *("syntax", "rejected", "denied", "tool_error", "user_error", "timeout"),
    *("memory_limit", "output_limit", "call_limit", "outcome_unknown", "diverged"),
    *("cancelled", "internal"),
)
"""The `ErrorKind` of contracts, which this package must not import."""

_CONSUMER = configured(vocabulary.CONSUMER_GROUP, "durable consumers of the message catalog")
_POOL = configured(vocabulary.POOL, "schemas of the service's pools")
_SCOPE = configured(vocabulary.SCOPE, "scopes of callers, 1,000 at most")
_TOOL = configured(vocabulary.TOOL, "tools that configured servers list, 1,000 at most")

# Every process
STARTED: Final = gauge(
    "pml.process.started", "s", "Unix time at which the process began to record measurements."
)

# HTTP, in the gateway
HTTP_DURATION: Final = histogram(
    "http.server.request.duration",
    "s",
    "Requests of the gateway until the end of the response; streams (`GET /mcp`, `…/events`) last.",
    configured(vocabulary.ROUTE, "the gateway's routes, else `other`"),
    one_of(vocabulary.METHOD, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "_OTHER"),
    configured(vocabulary.STATUS, "status codes; `0` where the client left before"),
)

# The bus, in every service
BUS_MESSAGES: Final = counter(
    "pml.bus.messages",
    "{message}",
    "Deliveries that were handled, by what became of them; `dead_letter` ends in one.",
    _CONSUMER,
    one_of(vocabulary.OUTCOME, "done", "retried", "dead_letter", "left"),
)
BUS_REDELIVERIES: Final = counter(
    "pml.bus.redeliveries", "{message}", "Deliveries of a message after its first one.", _CONSUMER
)
BUS_HANDLING: Final = histogram(
    "pml.bus.handling.duration",
    "s",
    "Calls of a handler, with the publication of what follows; a batch is one call.",
    _CONSUMER,
)
BUS_BATCH: Final = histogram(
    "pml.bus.batch.size",
    "{message}",
    "Messages that came together to a consumer that takes batches.",
    _CONSUMER,
    buckets=COUNTS,
)
BUS_PENDING: Final = gauge(
    "pml.bus.pending",
    "{message}",
    "Messages stored for a consumer and not delivered, as of its latest delivery.",
    _CONSUMER,
)
BUS_PENDING_AGE: Final = gauge(
    "pml.bus.pending.age",
    "s",
    "Time since the oldest message that a consumer has not settled was stored; every 30 s.",
    _CONSUMER,
)
QUERIES: Final = histogram(
    "pml.bus.query.duration",
    "s",
    "Queries served for other services.",
    configured(vocabulary.QUERY, "queries of the message catalog"),
    one_of(vocabulary.OUTCOME, *QUERY_CODES),
)

# Postgres, in gateway, learner and registry
POOL_CONNECTIONS: Final = gauge(
    "pml.db.pool.connections",
    "{connection}",
    "Connections of a pool.",
    _POOL,
    one_of(vocabulary.STATE, "used", "idle"),
)
POOL_LIMIT: Final = gauge(
    "pml.db.pool.limit", "{connection}", "Connections that a pool may have.", _POOL
)
POOL_WAITING: Final = updown(
    "pml.db.pool.waiting", "{request}", "Requests for a connection that wait for one."
)
POOL_WAITED: Final = counter(
    "pml.db.pool.waited", "s", "Time in which requests for a connection waited for one."
)
POOL_TIMEOUTS: Final = counter(
    "pml.db.pool.timeouts", "{request}", "Requests for a connection that got none in time."
)

# Workflows and approvals, in the gateway
WORKFLOWS: Final = histogram(
    "pml.workflow.duration",
    "s",
    "Workflows from their request to their end, a wait for approval included; a redelivered end "
    "may count twice.",
    one_of(vocabulary.OUTCOME, "success", *ERROR_KINDS),
    buckets=LONG_SECONDS,
)
EXECUTIONS_WAITING: Final = updown(
    "pml.executions.waiting", "{execution}", "Callers that wait for their execution to begin."
)
EXECUTIONS_IN_FLIGHT: Final = gauge(
    "pml.executions.in_flight", "{execution}", "Executions that have begun and have not ended."
)
EXECUTIONS_REFUSED: Final = counter(
    "pml.executions.refused", "{execution}", "Executions refused: too many were waiting.", _SCOPE
)
EXECUTIONS_WAIT: Final = histogram(
    "pml.executions.wait.duration",
    "s",
    "Time for which executions waited to begin, of those that had to.",
    one_of(vocabulary.OUTCOME, "admitted", "refused"),
)
APPROVALS: Final = histogram(
    "pml.approval.duration",
    "s",
    "Approvals from their request to their decision or end.",
    one_of(vocabulary.DECISION, "approved", "denied", "expired", "withdrawn"),
    buckets=LONG_SECONDS,
)
APPROVALS_WAITING: Final = gauge(
    "pml.approvals.waiting",
    "{approval}",
    "Approvals that wait for a person, of all scopes and gateways; each gateway counts all.",
)
OUTBOX_BACKLOG: Final = gauge(
    "pml.outbox.backlog",
    "{message}",
    "Messages of the outbox not published yet, of all gateways; each gateway counts all.",
)
OUTBOX_SET_ASIDE: Final = counter(
    "pml.outbox.set_aside",
    "{message}",
    "Messages of the outbox that could not be read, and so were not published.",
)
CACHE_LOOKUPS: Final = counter(
    "pml.cache.lookups",
    "{lookup}",
    "Lookups in the cache of results; `stale`: there was a result that must not be returned.",
    one_of(vocabulary.CACHE_OUTCOME, "hit", "miss", "stale", "unavailable"),
)

# Tools, in the gateway
TOOL_CALLS: Final = histogram(
    "pml.tool.call.duration",
    "s",
    "Calls made at MCP servers, each until its outcome; `ask` and `refused` call nothing.",
    _TOOL,
    one_of(vocabulary.OUTCOME, *CALL_STATUS),
)
CALLS_ANSWERED: Final = counter(
    "pml.tool.calls.answered",
    "{call}",
    "Calls that runs asked for: `made` now, answered from the `ledger`, or `joined` to one under "
    "way.",
    one_of(vocabulary.SOURCE, "made", "ledger", "joined"),
)
MCP_SERVERS: Final = gauge(
    "pml.mcp.servers",
    "{server}",
    "MCP servers of this gateway by the state of their connection; `refusing`: its circuit is "
    "not closed.",
    configured(vocabulary.SERVER, "configured servers"),
    one_of(vocabulary.STATE, "connecting", "ready", "failed", "refusing"),
)

# Sandboxes and runs, in the executor
SANDBOXES: Final = gauge(
    "pml.sandbox.processes",
    "{process}",
    "Sandbox processes: `spare` and `idle` ones are warm, for any scope and for their own.",
    one_of(vocabulary.STATE, "spare", "idle", "busy", "starting", "ending"),
)
SANDBOX_LIMIT: Final = gauge(
    "pml.sandbox.limit", "{process}", "Sandbox processes that an executor may have."
)
SANDBOX_LEASE: Final = histogram(
    "pml.sandbox.lease.duration",
    "s",
    "Time until a run got a sandbox process.",
    one_of(vocabulary.OUTCOME, "leased", "unavailable"),
)
SANDBOX_KILLS: Final = counter(
    "pml.sandbox.kills",
    "{process}",
    "Sandbox processes killed after a run that did not end by itself, by how it ended.",
    one_of(vocabulary.REASON, "success", "parked", "left", "retried", "stopped", *ERROR_KINDS),
)
RUNS: Final = histogram(
    "pml.run.duration",
    "s",
    "Attempts at runs, until the last append; `left`: another executor has the run; `stopped`: "
    "the run was cancelled, or this executor is.",
    one_of(vocabulary.OUTCOME, "success", "parked", "left", "retried", "stopped", *ERROR_KINDS),
)
REPLAYS: Final = counter(
    "pml.run.replays", "{run}", "Attempts that replayed the journal of an earlier one."
)

# Learning, in the learner
LEARNED: Final = counter(
    "pml.learner.runs",
    "{run}",
    "Runs received: `learned`, `repeated` deliveries, or `deleted` before.",
    one_of(vocabulary.OUTCOME, "learned", "repeated", "deleted"),
)
LEARNER_LAG: Final = histogram(
    "pml.learner.lag",
    "s",
    "Time from the end of a run until it is learned; of a batch, of its oldest.",
)
REBUILDS: Final = counter(
    "pml.learner.rebuilds", "{capability}", "Capabilities whose learning was rebuilt."
)

# Discovery, in the registry
DISCOVERIES: Final = histogram(
    "pml.discovery.duration",
    "s",
    "Discoveries; `degraded`: the embedder or the index was away, words alone were searched.",
    one_of(vocabulary.DEGRADED, "true", "false"),
)
INDEX_BACKLOG: Final = gauge(
    "pml.index.backlog",
    "{change}",
    "Changes that the external vector index has not got yet, as of the last look.",
)
VERSIONS_REFUSED: Final = counter(
    "pml.versions.refused",
    "{refusal}",
    "Refusals of stored versions that are not what was signed.",
    one_of(vocabulary.FAULT, "unsigned", "not_as_signed"),
)

METRICS: Final[tuple[Metric, ...]] = tuple(
    each for each in tuple(globals().values()) if isinstance(each, Metric)
)
