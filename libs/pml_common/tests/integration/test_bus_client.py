"""The bus's NATS client: replies reach their requests, and writes stay in order."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NoReplyInTime
from nats.js.api import Header

from libs.pml_local.tests.support.harness import RunningNats, eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.client import DirectClient
from pml_common.bus.connection import connect, flush, subscribe

pytestmark = pytest.mark.integration

BIG = b"x" * 700_000


@pytest.fixture
async def client(nats_url: str) -> AsyncIterator[DirectClient]:
    async with _connected(nats_url) as client:
        yield client


@asynccontextmanager
async def _connected(url: str) -> AsyncGenerator[DirectClient]:
    async def unheard() -> None: ...

    client = await connect(url, "test", unheard, 5.0, inbox="_INBOX.test")
    assert isinstance(client, DirectClient)
    try:
        yield client
    finally:
        await client.close()


async def _echoing(client: DirectClient, subject: str) -> None:
    async def echo(message: Msg) -> None:
        await message.respond(message.data)

    await subscribe(client, subject, echo)
    await flush(client)


async def test_concurrent_requests_get_their_own_replies(client: DirectClient) -> None:
    await _echoing(client, "test.echo")
    texts = [f"{number}".encode() for number in range(200)]
    answers = await asyncio.gather(
        *(client.request("test.echo", text, PATIENCE_S) for text in texts)
    )
    assert [answer.data for answer in answers] == texts


@pytest.mark.parametrize(
    ("said", "heard"), [("yes", "yes"), ("é ✓", "é ✓"), ("no\r\nForged: 1", "no  Forged: 1")]
)
async def test_headers_are_read_as_sent_and_none_can_be_injected(
    client: DirectClient, said: str, heard: str
) -> None:
    async def say(message: Msg) -> None:
        await client.publish(message.reply, b"body", headers={"Said": said, Header.MSG_TTL: "2"})

    await subscribe(client, "test.say", say)
    await flush(client)
    answer = await client.request("test.say", b"", PATIENCE_S, headers={"Asked": "1"})
    assert (answer.headers, answer.data) == ({"Said": heard, "Nats-TTL": "2"}, b"body")


async def test_a_request_without_responders_fails_at_once(client: DirectClient) -> None:
    with pytest.raises(NoRespondersError):
        await client.request("test.nobody", b"", PATIENCE_S)


async def test_a_late_reply_is_dropped(client: DirectClient) -> None:
    asked: list[Msg] = []

    async def keep(message: Msg) -> None:
        asked.append(message)

    await subscribe(client, "test.late", keep)
    await _echoing(client, "test.echo")
    with pytest.raises(NoReplyInTime):
        await client.request("test.late", b"", 0.02)
    await asked[0].respond(b"too late")
    assert (await client.request("test.echo", b"in time", PATIENCE_S)).data == b"in time"


async def test_more_than_the_socket_buffers_arrives_complete_and_in_order(nats_url: str) -> None:
    async with _connected(nats_url) as client, _connected(nats_url) as reader:
        came: list[int] = []

        async def note(message: Msg) -> None:
            came.append(int(message.data[:4]))

        await subscribe(reader, "test.big", note)
        await flush(reader)
        for number in range(40):
            await client.publish("test.big", f"{number:04d}".encode() + BIG)
        await flush(client)
        await eventually(lambda: len(came) == 40)
        assert came == list(range(40))


async def test_requests_work_again_after_an_outage(nats_server: RunningNats) -> None:
    async with _connected(nats_server.url) as client:
        await _echoing(client, "test.echo")
        assert (await client.request("test.echo", b"before", PATIENCE_S)).data == b"before"
        await nats_server.kill()
        await eventually(lambda: not client.is_connected)
        await nats_server.start()
        await eventually(lambda: client.is_connected)

        async def answered() -> bool:
            try:
                return (await client.request("test.echo", b"after", 0.5)).data == b"after"
            except (NoRespondersError, NoReplyInTime):
                return False

        await eventually(answered)


async def test_a_request_times_out_although_its_server_reads_nothing(
    nats_server: RunningNats,
) -> None:
    async with _connected(nats_server.url) as client:
        await _echoing(client, "test.echo")
        with nats_server.paused():
            for _ in range(30):  # more than the socket and the client's own memory take
                async with asyncio.timeout(PATIENCE_S):
                    with pytest.raises(NoReplyInTime):
                        await client.request("test.echo", BIG, 0.02)
        assert (await client.request("test.echo", b"after", PATIENCE_S)).data == b"after"
