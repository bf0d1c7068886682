"""Guarantees of queries."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

import pytest

from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import names
from pml_common.bus.errors import NoResponder, QueryErrorCode, QueryFailed
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.contracts.base import Query
from pml_common.contracts.catalog import QueryType
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition

SCOPE = Scope(org="acme", project="webapp")
OTHER, THIRD = (Scope(org="acme", project=each) for each in ("mobile", "desktop"))
QUESTION = ListTools(scope=SCOPE)
SCOPED = replace(catalog.LIST_TOOLS, scoped=True)


def tool(name: str, description: str = "") -> ToolDefinition:
    return ToolDefinition(server="fs", name=name, description=description)


async def test_a_query_is_served_by_its_owner(querying: BusHarness) -> None:
    query_client, owner = await querying.connect("gateway"), await querying.connect("registry")

    async def answer(question: ListTools) -> ToolCatalog:
        return ToolCatalog(tools=(tool(question.server or "all"),))

    await owner.serve(catalog.LIST_TOOLS, answer)
    reply = await query_client.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE, server="git"))
    assert [each.name for each in reply.tools] == ["git"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("not_found", "no capability fs:ensure"),
        ("invalid", "limit:\n  must be positive"),
        ("conflict", "schon vergeben: größe"),
        ("unavailable", "the index is being built"),
        ("internal", ""),
    ],
)
async def test_an_owners_error_reaches_the_client(
    querying: BusHarness, code: QueryErrorCode, message: str
) -> None:
    bus, query_client = await querying.connect("registry"), await querying.connect("gateway")

    async def refuse(question: ListTools) -> ToolCatalog:
        raise QueryFailed(code, message)

    await bus.serve(catalog.LIST_TOOLS, refuse)
    with pytest.raises(QueryFailed) as failed:
        await query_client.request(catalog.LIST_TOOLS, QUESTION)
    assert failed.value.code == code
    assert failed.value.message == message


async def test_a_bug_in_a_handler_is_an_internal_error_to_the_client(querying: BusHarness) -> None:
    bus, query_client = await querying.connect("registry"), await querying.connect("gateway")

    async def stumble(question: ListTools) -> ToolCatalog:
        raise ZeroDivisionError("oops")

    await bus.serve(catalog.LIST_TOOLS, stumble)
    with pytest.raises(QueryFailed, match="ZeroDivisionError: oops") as failed:
        await query_client.request(catalog.LIST_TOOLS, QUESTION)
    assert failed.value.code == "internal"


async def test_a_value_that_an_owner_cannot_read_is_told_without_the_validators_text(
    querying: BusHarness,
) -> None:
    bus, query_client = await querying.connect("registry"), await querying.connect("gateway")

    async def misread(question: ListTools) -> ToolCatalog:
        return ToolCatalog.model_validate({"tools": 1})

    await bus.serve(catalog.LIST_TOOLS, misread)
    with pytest.raises(QueryFailed) as failed:
        await query_client.request(catalog.LIST_TOOLS, QUESTION)
    assert failed.value.message == "ValidationError: tools: must be a list"


async def test_an_owner_without_replicas_is_unavailable_at_once(querying: BusHarness) -> None:
    query_client = await querying.connect("gateway")
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(
            QueryFailed, match="registry list-tools: no replica is running"
        ) as failed:
            await query_client.request(catalog.LIST_TOOLS, QUESTION, timeout=30)
    assert failed.value.code == "unavailable"


async def test_an_owner_that_does_not_reply_in_time_is_unavailable(querying: BusHarness) -> None:
    bus, query_client = await querying.connect("registry"), await querying.connect("gateway")

    async def sleepy(question: ListTools) -> ToolCatalog:
        await asyncio.Event().wait()
        return ToolCatalog(tools=())

    await bus.serve(catalog.LIST_TOOLS, sleepy)
    with pytest.raises(
        QueryFailed, match=r"registry list-tools: no answer within 0\.2 s"
    ) as failed:
        await query_client.request(catalog.LIST_TOOLS, QUESTION, timeout=0.2)  # waits: it is over
    assert failed.value.code == "unavailable"


class WiderQuestion(Query):
    """A query of a client with a different contract."""

    server: int


async def test_a_query_that_breaks_the_contract_is_invalid(querying: BusHarness) -> None:
    bus, query_client = await querying.connect("registry"), await querying.connect("gateway")

    async def answer(question: ListTools) -> ToolCatalog:
        return ToolCatalog(tools=())

    await bus.serve(catalog.LIST_TOOLS, answer)
    wider = QueryType("registry", "list-tools", WiderQuestion, ToolCatalog, clients=("gateway",))
    with pytest.raises(QueryFailed, match="not a ListTools") as failed:
        await query_client.request(wider, WiderQuestion(scope=SCOPE, server=7))
    assert failed.value.code == "invalid"


async def test_a_reply_that_breaks_the_contract_is_an_internal_error(querying: BusHarness) -> None:
    bus, query_client = await querying.connect("registry"), await querying.connect("gateway")

    async def answer(question: ListTools) -> ListTools:
        return question

    await bus.serve(replace(catalog.LIST_TOOLS, reply=ListTools), answer)
    with pytest.raises(QueryFailed, match="registry answered: not a ToolCatalog") as failed:
        await query_client.request(catalog.LIST_TOOLS, QUESTION)
    assert failed.value.code == "internal"


async def test_a_slow_query_delays_no_other(querying: BusHarness) -> None:
    bus, query_client = await querying.connect("registry"), await querying.connect("gateway")
    release = asyncio.Event()

    async def answer(question: ListTools) -> ToolCatalog:
        if question.server == "slow":
            await release.wait()
        return ToolCatalog(tools=())

    await bus.serve(catalog.LIST_TOOLS, answer)
    slow = asyncio.create_task(
        query_client.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE, server="slow"), timeout=100)
    )
    for _ in range(3):
        await query_client.request(catalog.LIST_TOOLS, QUESTION)
    assert not slow.done()
    release.set()
    assert await slow == ToolCatalog(tools=())


async def test_replicas_share_the_queries(querying: BusHarness) -> None:
    query_client = await querying.connect("gateway")
    answered = [0, 0]
    for index in range(2):

        async def answer(question: ListTools, index: int = index) -> ToolCatalog:
            answered[index] += 1
            return ToolCatalog(tools=())

        await (await querying.connect("registry")).serve(catalog.LIST_TOOLS, answer)
    for _ in range(40):
        await query_client.request(catalog.LIST_TOOLS, QUESTION)
    assert sum(answered) == 40
    assert all(answered)


async def test_large_queries_and_replies_go_through(querying: BusHarness) -> None:
    bus, query_client = await querying.connect("registry"), await querying.connect("gateway")

    async def echo(question: ListTools) -> ToolCatalog:
        return ToolCatalog(tools=(tool("echo", question.server or ""),))

    await bus.serve(catalog.LIST_TOOLS, echo)
    text = uuid4().hex * 50_000
    reply = await query_client.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE, server=text))
    assert reply.tools[0].description == text


async def test_a_drained_owner_replies_to_received_queries_only(
    querying: BusHarness,
) -> None:
    query_client, owner = await querying.connect("gateway"), await querying.connect("registry")
    begun, release = asyncio.Event(), asyncio.Event()

    async def answer(question: ListTools) -> ToolCatalog:
        begun.set()
        await release.wait()
        return ToolCatalog(tools=(tool("last"),))

    await owner.serve(catalog.LIST_TOOLS, answer)
    asked = asyncio.create_task(query_client.request(catalog.LIST_TOOLS, QUESTION, timeout=100))
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
        draining = asyncio.create_task(owner.drain())
        release.set()
        assert (await asked).tools[0].name == "last"
        await draining
    with pytest.raises(QueryFailed, match="no replica is running"):
        await query_client.request(catalog.LIST_TOOLS, QUESTION)


async def test_a_scoped_query_goes_to_a_replica_that_serves_its_scope(harness: BusHarness) -> None:
    """One of them, if several do; the one that serves all is in their queue group."""
    client, answered = await harness.connect("gateway"), list[tuple[str, Scope]]()

    async def replica(name: str, scopes: Sequence[Scope] | None) -> Bus:
        async def answer(question: ListTools) -> ToolCatalog:
            answered.append((name, question.scope))
            return ToolCatalog(tools=())

        bus = await harness.connect("registry")
        await bus.serve(SCOPED, answer, scopes=scopes)
        return bus

    async def ask(*scopes: Scope) -> set[tuple[str, Scope]]:
        answered.clear()
        for each in scopes * 20:
            await client.request(SCOPED, ListTools(scope=each))
        assert len(answered) == len(scopes) * 20
        return set(answered)

    await replica("here", [SCOPE])
    both = await replica("both", [OTHER, THIRD])
    assert await ask(SCOPE, OTHER) == {("here", SCOPE), ("both", OTHER)}
    await both.drain()
    with pytest.raises(NoResponder):
        await ask(OTHER)
    await replica("all", None)
    assert await ask(SCOPE) == {("here", SCOPE), ("all", SCOPE)}
    assert await ask(OTHER) == {("all", OTHER)}


def test_a_querys_subject_names_its_owner() -> None:
    assert names.query_subject(catalog.LIST_TOOLS) == "pml.qry.registry.list-tools.v1"
