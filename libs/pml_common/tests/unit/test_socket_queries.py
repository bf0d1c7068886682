"""Queries over sockets and over NATS: which way each goes, and which are repeated."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from libs.pml_common.tests.support.proofs import reply_of
from libs.pml_common.tests.support.sockets import (
    FAR,
    NEAR,
    QUESTION,
    Machine,
    Registry,
    raw_registry,
    request,
    unanswered,
)
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.errors import QueryFailed
from pml_common.bus.sockets import links, server
from pml_common.bus.sockets.folder import SocketFolder
from pml_common.bus.sockets.frames import (
    Frame,
    Kind,
    decode_envelope,
    encode_envelope,
    encode_frame,
)
from pml_common.bus.sockets.queries import SocketQueries
from pml_common.contracts import catalog
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_common.contracts.scope import Scope


async def test_queries_go_over_nats_until_there_is_a_socket_and_again_without_it(
    machine: Machine, near: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "_FIRST_DELAY_S", 0.0)
    monkeypatch.setattr(links, "_MOST_DELAY_S", 0.0)
    gateway, registry = machine.queries("gateway"), machine.queries("registry")
    assert await gateway.request(catalog.LIST_TOOLS, QUESTION) == FAR
    await registry.serve(catalog.LIST_TOOLS, near)

    async def arrives(wanted: ToolCatalog) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while await gateway.request(catalog.LIST_TOOLS, QUESTION) != wanted:
                pass

    await arrives(NEAR)
    await registry.stop(1)
    assert await gateway.request(catalog.LIST_TOOLS, QUESTION) == FAR
    await machine.queries("registry", "two").serve(catalog.LIST_TOOLS, near)
    await arrives(NEAR)


async def test_a_query_of_a_scope_that_the_socket_does_not_serve_goes_over_nats(
    machine: Machine, near: Registry
) -> None:
    scoped, other = replace(catalog.LIST_TOOLS, scoped=True), Scope(org="acme", project="mobile")
    gateway = machine.queries("gateway")
    await machine.queries("registry").serve(scoped, near, scopes=[other])
    await machine.far.serve(scoped, Registry(FAR), scopes=[QUESTION.scope])
    await gateway.look("registry")
    assert await gateway.request(scoped, ListTools(scope=other)) == NEAR
    assert await gateway.request(scoped, QUESTION) == FAR
    assert near.begun == 1
    await machine.queries("registry", "all").serve(scoped, Registry(NEAR))
    await gateway.look("registry")
    found = [await gateway.request(scoped, QUESTION) for _ in range(4)]
    assert NEAR in found


async def test_sockets_are_looked_for_more_seldom_than_queries_are_sent(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "_FIRST_DELAY_S", 1000.0)
    looks: list[Path] = []

    def names(folder: SocketFolder) -> list[str]:
        looks.append(folder.path)
        return []

    monkeypatch.setattr(SocketFolder, "names", names)
    gateway = machine.queries("gateway")
    for _ in range(100):
        assert await gateway.request(catalog.LIST_TOOLS, QUESTION) == FAR
    assert looks == [machine.folder.path]


@pytest.mark.parametrize("sent", [b"", encode_frame(Kind.REPLY, 1, request())[:-1]])
async def test_a_request_whose_connection_is_lost_fails_at_once_and_is_not_sent_again(
    machine: Machine, sent: bytes
) -> None:
    async with unanswered(machine, timeout=100) as (gateway, end, asking):
        end.send(sent)
        end.close()
        with pytest.raises(QueryFailed, match="the connection was lost") as failed:
            await asking
    assert failed.value.code == "unavailable"
    assert await gateway.request(catalog.LIST_TOOLS, QUESTION) == FAR


async def test_a_replica_that_does_not_answer_is_passed_over_until_it_does(
    machine: Machine,
) -> None:
    gateway = machine.queries("gateway")
    async with raw_registry(machine.folder) as clients:
        await gateway.look("registry")
        end = await clients.get()
        with pytest.raises(QueryFailed, match=r"no answer within 0\.05 s"):
            await gateway.request(catalog.LIST_TOOLS, QUESTION, timeout=0.05)  # waits: it is over
        first = await end.receive(Kind.REQUEST)
        await end.receive(Kind.PING)
        assert await gateway.request(catalog.LIST_TOOLS, QUESTION) == FAR
        end.send_frame(Kind.REPLY, first.number, _reply(first, FAR))
        end.send_frame(Kind.PONG)
        asking = asyncio.create_task(_near(gateway))
        second = await end.receive(Kind.REQUEST)
        end.send_frame(Kind.REPLY, second.number, _reply(second, NEAR))
        assert await asking == NEAR


def _reply(asked: Frame, answer: ToolCatalog) -> bytes:
    query = decode_envelope(asked.payload)
    return encode_envelope(reply_of(catalog.LIST_TOOLS, query, answer))


async def _near(asking: SocketQueries) -> ToolCatalog:
    """Request until the reply is not the one over NATS."""
    while (found := await asking.request(catalog.LIST_TOOLS, QUESTION)) == FAR:
        pass
    return found


async def test_a_slow_request_to_a_replica_that_answers_keeps_its_connection_in_use(
    machine: Machine, near: Registry
) -> None:
    gateway, registry = machine.queries("gateway"), machine.queries("registry")
    await registry.serve(catalog.LIST_TOOLS, near)
    await gateway.look("registry")
    near.go_on.clear()
    with pytest.raises(QueryFailed, match="no answer"):
        await gateway.request(catalog.LIST_TOOLS, QUESTION, timeout=0.02)  # waits: it is over
    near.go_on.set()
    assert await _near(gateway) == NEAR
    assert near.begun == near.ended == 2


async def test_a_cancelled_request_is_finished_by_its_owner(
    machine: Machine, near: Registry
) -> None:
    gateway, registry = machine.queries("gateway"), machine.queries("registry")
    await registry.serve(catalog.LIST_TOOLS, near)
    await gateway.look("registry")
    near.go_on.clear()
    asking = asyncio.create_task(gateway.request(catalog.LIST_TOOLS, QUESTION))
    await near.has_begun()
    asking.cancel()
    await asyncio.wait({asking})
    near.go_on.set()
    assert await _near(gateway) == NEAR
    assert near.ended == 2


async def test_requests_beyond_the_window_go_over_nats(machine: Machine, near: Registry) -> None:
    gateway, registry = machine.queries("gateway"), machine.queries("registry")
    await registry.serve(catalog.LIST_TOOLS, near)
    await gateway.look("registry")
    near.go_on.clear()
    held = [
        asyncio.create_task(gateway.request(catalog.LIST_TOOLS, QUESTION, timeout=100))
        for _ in range(server.WINDOW)
    ]
    await near.has_begun(server.WINDOW)
    assert await gateway.request(catalog.LIST_TOOLS, QUESTION) == FAR
    near.go_on.set()
    assert await asyncio.gather(*held) == [NEAR] * server.WINDOW
    assert await gateway.request(catalog.LIST_TOOLS, QUESTION) == NEAR
