"""Processes that do not prove who they are, and bytes that make no sense."""

import asyncio
import struct
import sys
from pathlib import Path

import pytest

from libs.pml_common.tests.support.relay import relay
from libs.pml_common.tests.support.sockets import (
    FAR,
    NEAR,
    QUESTION,
    Machine,
    Registry,
    proven_client,
    raw_client,
    request,
    unanswered,
)
from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.errors import QueryFailed
from pml_common.bus.identity import Identity
from pml_common.bus.sockets import server
from pml_common.bus.sockets.folder import SocketFolder
from pml_common.bus.sockets.frames import MOST_UNPROVEN, Kind, encode_frame
from pml_common.contracts import catalog
from pml_common.signing import SigningKey, TrustedKeys


@pytest.mark.parametrize("own_process", [True, False])
async def test_a_process_in_between_that_passes_on_every_byte_is_detected(
    machine: Machine, near: Registry, tmp_path: Path, own_process: bool
) -> None:
    """Its process id is not the one that either end has signed."""
    await machine.queries("registry").serve(catalog.LIST_TOOLS, near)
    between = SocketFolder(tmp_path / "between")
    gateway = machine.queries("gateway", folder=between)
    if own_process:
        passing = asyncio.create_task(relay(between, machine.folder))
        await eventually(lambda: between.names())
        await gateway.look("registry")
        assert await gateway.request(catalog.LIST_TOOLS, QUESTION) == NEAR
        await gateway.close()
        assert await passing > 0
        return
    folders = (str(between.path), str(machine.folder.path))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", relay.__module__, *folders, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"listening\n"
    await gateway.look("registry")
    assert await gateway.request(catalog.LIST_TOOLS, QUESTION) == FAR
    passed, _ = await process.communicate()
    assert int(passed) > 0
    assert near.begun == 0


async def test_a_query_that_is_not_for_this_client_is_not_served(
    machine: Machine, near: Registry
) -> None:
    await machine.queries("registry").serve(catalog.LIST_TOOLS, near)
    end = await proven_client(machine.folder, "learner")
    end.send_frame(Kind.REQUEST, 5, request())
    assert (await end.receive(Kind.NOT_SERVED)).number == 5
    learner = machine.queries("learner")
    await learner.look("registry")
    assert await learner.request(catalog.LIST_TOOLS, QUESTION) == FAR
    assert near.begun == 0
    end.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        encode_frame(Kind.REQUEST, 1, request()),
        encode_frame(Kind.HELLO, 0, b"{}"),
        encode_frame(Kind.HELLO, 0, b" " * (MOST_UNPROVEN + 1)),
        encode_frame(Kind.PING),
    ],
)
async def test_a_client_that_has_not_proved_itself_gets_nothing(
    machine: Machine, near: Registry, sent: bytes
) -> None:
    await machine.queries("registry").serve(catalog.LIST_TOOLS, near)
    end = await raw_client(machine.folder)
    await end.receive(Kind.CHALLENGE)
    end.send(sent)
    assert await end.is_closed()
    end.close()
    assert near.begun == 0


async def test_a_client_that_says_nothing_is_disconnected(
    machine: Machine, near: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_HANDSHAKE_S", 0.01)
    await machine.queries("registry").serve(catalog.LIST_TOOLS, near)
    end = await raw_client(machine.folder)
    await end.receive(Kind.CHALLENGE)
    assert await end.is_closed()
    end.close()


async def test_connections_are_bounded(
    machine: Machine, near: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 1)
    await machine.queries("registry").serve(catalog.LIST_TOOLS, near)
    first = await proven_client(machine.folder, "gateway")
    second = await raw_client(machine.folder)
    assert await second.is_closed()
    gateway = machine.queries("gateway")
    await gateway.look("registry")
    assert await gateway.request(catalog.LIST_TOOLS, QUESTION) == FAR
    first.close()
    second.close()


async def test_keys_that_are_not_trusted_lead_to_no_connection(
    machine: Machine, near: Registry
) -> None:
    await machine.queries("registry").serve(catalog.LIST_TOOLS, near)
    stranger = SigningKey.generate("gateway")
    trusted = TrustedKeys([stranger.public])
    gateway = machine.queries("gateway", identity=Identity([stranger], trusted))
    await gateway.look("registry")
    assert await gateway.request(catalog.LIST_TOOLS, QUESTION) == FAR
    assert near.begun == 0


@pytest.mark.parametrize("garbage", [b"\xff" * 40, encode_frame(Kind.WELCOME, 0, b"{}")])
async def test_a_connection_with_garbage_is_closed_once_its_requests_are_finished(
    machine: Machine, near: Registry, garbage: bytes
) -> None:
    await machine.queries("registry").serve(catalog.LIST_TOOLS, near)
    gateway = machine.queries("gateway")
    await gateway.look("registry")
    end = await proven_client(machine.folder, "gateway")
    near.go_on.clear()
    end.send_frame(Kind.REQUEST, 1, request())
    await near.has_begun()
    end.send(garbage)
    closing = asyncio.create_task(end.receive(Kind.REPLY))
    other = asyncio.create_task(gateway.request(catalog.LIST_TOOLS, QUESTION))
    await near.has_begun(2)
    assert not closing.done()
    near.go_on.set()
    assert (await closing).number == 1
    assert await end.is_closed()
    assert await other == NEAR
    end.close()


async def test_half_a_frame_does_nothing(machine: Machine, near: Registry) -> None:
    await machine.queries("registry").serve(catalog.LIST_TOOLS, near)
    end = await proven_client(machine.folder, "gateway")
    end.send(encode_frame(Kind.REQUEST, 1, request())[:-1])
    end.close()
    gateway = machine.queries("gateway")
    await gateway.look("registry")
    assert await gateway.request(catalog.LIST_TOOLS, QUESTION) == NEAR
    assert near.begun == 1


@pytest.mark.parametrize(
    "garbage",
    [
        struct.pack("!IBQ", 2**31, Kind.REPLY, 1),
        encode_frame(Kind.REPLY, 1, b"no envelope"),
        encode_frame(Kind.REPLY, 7, request()),
        encode_frame(Kind.CHALLENGE, 0, b"{}"),
    ],
)
async def test_a_request_answered_by_garbage_runs_out_of_time(
    machine: Machine, garbage: bytes
) -> None:
    """The owner may be working on it, so it is not repeated elsewhere at once."""
    async with unanswered(machine, timeout=0.2) as (gateway, end, asking):  # waits: it is over
        end.send(garbage)
        with pytest.raises(QueryFailed, match=r"no answer within 0\.2 s"):
            await asking
        assert await gateway.request(catalog.LIST_TOOLS, QUESTION) == FAR


async def test_a_folder_that_cannot_be_used_leaves_queries_to_nats(
    machine: Machine, near: Registry
) -> None:
    machine.folder.path.mkdir(mode=0o755)
    machine.folder.path.chmod(0o755)
    registry, gateway = machine.queries("registry"), machine.queries("gateway")
    await registry.serve(catalog.LIST_TOOLS, near)
    await gateway.look("registry")
    assert await gateway.request(catalog.LIST_TOOLS, QUESTION) == FAR
