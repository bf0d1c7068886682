"""Budget of the learner and the registry: transactions and messages for 50 runs of a capability.

A failure means that somebody added a transaction or a message to each run, or to each batch of
them. A run costs the learner and the registry one delivery and one acknowledgement for each message
about it (`execution-analyzed`, `run-finished`), and nothing else of its own.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import asyncpg.pool
import pytest
from nats.aio.client import Client

from libs.pml_common.tests.support.harness import key_files
from libs.pml_local.tests.support.databases import as_service, migrated
from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import catalog, ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.catalog import Consumer, Service
from pml_common.contracts.decision import Decision
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import StaticStructure
from pml_common.contracts.trace import TaskResult
from pml_common.storage.pool import Pool
from pml_learner import app as learner
from pml_learner.settings import LearnerSettings
from pml_registry import app as registry
from pml_registry.ports import CodeShape
from pml_registry.settings import RegistrySettings

pytestmark = pytest.mark.integration

RUNS = 50
SCOPE = Scope(org="acme", project="webapp")
CODE = "return await mcp.fs.read(args)"
HASH = "ab12" * 16
CAPABILITY = CapabilityIdentity(capability_id=ids.capability_id(SCOPE, HASH), code_hash=HASH)
LEARNER_AT_START = 6
"""Uses of Postgres by a learner that starts: it prunes its inbox, makes the tables of this month,
the next and that of the runs, and looks for values of older rules and months without
statistics."""
REGISTRY_AT_START = 8
"""The registry prunes its inbox, looks for lapsed reservations, changes to publish, versions of
other keys, programs without a shape and capabilities without a name, and begins and reads the
embedding model."""
REQUESTS = 4
"""Requests for messages: for the first, for the others, for what came meanwhile (nothing), and for
the next."""


class KnownHash:
    """Returns the hash of `CODE`."""

    async def hash_of(self, code: str) -> str:
        """Return the hash."""
        return HASH

    async def shape_of(self, code: str) -> CodeShape:
        """Return a shape of its own."""
        return CodeShape(shape_hash=HASH, makes_calls=True)


def analysed(workflow: UUID) -> ExecutionAnalyzed:
    return ExecutionAnalyzed(
        scope=SCOPE,
        event_id=ids.effect_id(workflow, "execution-analyzed"),
        workflow_id=workflow,
        principal="agent-7",
        capability=CAPABILITY,
        code=CODE,
        instrumented=CODE,
        structure=StaticStructure(nodes=()),
        decision=Decision(verdict="allow"),
        parameters_schema={},
    )


def finished(workflow: UUID) -> RunFinished:
    calls = tuple(
        TaskResult(
            node_id=node,
            occurrence=0,
            tool=tool,
            args={},
            success=True,
            trace_id=uuid4(),
            started_at=at,
            duration_ms=1.0,
        )
        for node, tool, at in (("n1", "fs:stat", 0.0), ("n2", "fs:read", 2.0))
    )
    return RunFinished(
        scope=SCOPE,
        event_id=ids.effect_id(workflow, "run-finished"),
        workflow_id=workflow,
        principal="agent-7",
        capability=CAPABILITY,
        success=True,
        executed_path=("n1", "n2"),
        task_results=calls,
        trace_id=ids.root_trace_id(workflow),
        started_at=0.0,
        duration_ms=3.0,
        previous=0,
    )


@dataclass
class Spent:
    """Uses of a Postgres connection, each a transaction or a single statement, and the subjects of
    what was sent to NATS, acknowledgements excepted."""

    connections: int = 0
    subjects: list[str] = field(default_factory=list[str])

    def requests(self, consumer: Consumer[Message]) -> int:
        """Count the requests for messages of a consumer."""
        return sum(
            each.startswith("$JS.API.CONSUMER.MSG.NEXT.") and each.endswith(f".{consumer.durable}")
            for each in self.subjects
        )


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Spent:
    """Count what is taken from any pool and sent by any client."""
    counted, acquire, publish = Spent(), asyncpg.pool.Pool.acquire, Client.publish

    def acquire_one(pool: Pool, **options: float) -> object:
        counted.connections += 1
        return acquire(pool, **options)

    async def publish_one(client: Client, subject: str, *rest: Any, **options: Any) -> None:
        counted.subjects.append(subject)
        await publish(client, subject, *rest, **options)

    monkeypatch.setattr(asyncpg.pool.Pool, "acquire", acquire_one)
    monkeypatch.setattr(Client, "publish", publish_one)
    monkeypatch.setattr(registry, "CodeHashes", KnownHash)
    return counted


async def connect(url: str, service: Service) -> NatsBus:
    return await NatsBus.connect(url, service=service, identity=all_services_identity())


@asynccontextmanager
async def running(url: str, dsn: str, service: Service) -> AsyncGenerator[None]:
    """Run a service in this process until what it received is handled."""
    dsn = as_service(dsn, service)
    bus = await connect(url, service)
    with key_files("registry") as keys:
        if service == "learner":
            serving = learner.serve(LearnerSettings(postgres_dsn=dsn), bus)
        else:
            settings = RegistrySettings(postgres_dsn=dsn).model_copy(update=keys)
            serving = registry.serve(settings, bus)
        async with serving:
            try:
                yield
            finally:
                await bus.drain()


@pytest.fixture
async def postgres_dsn(empty_dsn: str) -> str:
    """A database with the schemas of both."""
    for service in ("learner", "registry"):
        await migrated(empty_dsn, service)
    return empty_dsn


async def facts(bus: NatsBus) -> Sequence[Message]:
    """Return what was published about the capability."""
    stored = await bus.history(SCOPE, str(CAPABILITY.capability_id))
    return [each.message for each in stored]


@pytest.fixture
async def other(nats_url: str) -> AsyncGenerator[NatsBus]:
    """The bus as the other services use it."""
    bus = await connect(nats_url, "gateway")
    yield bus
    await bus.drain()


async def test_fifty_runs_of_a_capability_cost_the_learner_one_transaction_and_two_messages(
    nats_url: str, postgres_dsn: str, spent: Spent, other: NatsBus
) -> None:
    for _ in range(RUNS):
        await other.publish(finished(uuid4()))
    async with running(nats_url, postgres_dsn, "learner"):

        async def both() -> bool:
            return len(await facts(other)) == 2

        await eventually(both)
    assert spent.connections <= LEARNER_AT_START + 1
    assert len(await facts(other)) == 2
    assert spent.requests(catalog.LEARNER_ON_RUN_FINISHED) <= REQUESTS


async def test_fifty_runs_of_a_capability_cost_the_registry_six_uses_of_postgres(
    nats_url: str, postgres_dsn: str, spent: Spent, other: NatsBus
) -> None:
    for _ in range(RUNS):
        await other.publish(analysed(uuid4()))
    async with running(nats_url, postgres_dsn, "registry"):

        async def created() -> bool:
            return len(await facts(other)) == 1

        await eventually(created)
    read_created_read = 3
    assert spent.connections <= REGISTRY_AT_START + read_created_read
    assert len(await facts(other)) == 1
    assert spent.requests(catalog.REGISTRY_ON_EXECUTION_ANALYZED) <= REQUESTS

    for _ in range(RUNS):
        await other.publish(finished(uuid4()))
    async with running(nats_url, postgres_dsn, "learner"):

        async def both() -> bool:
            return len(await facts(other)) == 3

        await eventually(both)
    spent.connections, spent.subjects = 0, []
    async with running(nats_url, postgres_dsn, "registry"):

        async def learned() -> bool:
            return len(await facts(other)) == 4

        await eventually(learned)
    read_and_learned, edges_counted, compared_once_listed = 2, 1, 2
    most = REGISTRY_AT_START + read_and_learned + edges_counted + compared_once_listed
    assert spent.connections <= most
    assert len(await facts(other)) == 4
    for consumer in (catalog.REGISTRY_ON_LEARNING_UPDATED, catalog.REGISTRY_ON_EDGES_OBSERVED):
        assert spent.requests(consumer) <= REQUESTS
