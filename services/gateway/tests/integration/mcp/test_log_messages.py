"""Log messages of servers, as the clients of PML's endpoint get them, and as servers send them."""

import asyncio
from dataclasses import dataclass, field
from uuid import UUID

import httpx2
import pytest
from mcp import MCPError
from mcp_types import LoggingMessageNotificationParams

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.log_levels import LogLevel, log_params
from pml_gateway.ports import Caller, CallerSide, CallOrigin, LogMessage
from services.gateway.tests.integration.mcp.harness import EACH_GENERATION, ServerHarness, connected
from services.gateway.tests.integration.mcp.legacy_client import begin, open_get, post
from services.gateway.tests.integration.mcp.served_endpoint import SCOPE, ServedEndpoint

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

SAID = ToolOutcome(status="ok", result={"content": "x"})


def _message(level: LogLevel, data: str) -> LogMessage:
    return LogMessage(level, log_params("fs", level, None, data))


LOGGED = [_message("debug", "fine"), _message("info", "1"), _message("error", "2")]


@dataclass
class Heard:
    """Messages that a client heard."""

    said: list[str] = field(default_factory=list[str])

    async def __call__(self, params: LoggingMessageNotificationParams) -> None:
        self.said.append(f"{params.level} {params.logger} {params.data}")


async def test_a_session_gets_what_its_calls_log_from_its_level_on(mcp: ServedEndpoint) -> None:
    mcp.agent.answers["fs:read"], mcp.agent.logged = SAID, LOGGED
    heard = Heard()
    async with asyncio.timeout(PATIENCE_S), mcp.client("legacy", on_log=heard) as client:
        assert client.server_capabilities.logging is not None
        await client.call_tool("fs_read", {})
        assert heard.said == []
        await client.set_logging_level("info")  # pyright: ignore[reportDeprecated]
        assert mcp.offers.levels == ["info"]
        await client.call_tool("fs_read", {})
        await eventually(lambda: heard.said == ["info fs 1", "error fs 2"])


async def test_a_request_gets_what_it_asks_for_from_2026_07_28_on(mcp: ServedEndpoint) -> None:
    mcp.agent.answers["fs:read"], mcp.agent.logged = SAID, LOGGED
    wants: list[tuple[LogLevel | None, list[str]]] = [(None, []), ("error", ["error fs 2"])]
    for level, said in wants:
        heard = Heard()
        async with mcp.client(on_log=heard, log_level=level) as client:
            await client.call_tool("fs_read", {})
            await eventually(lambda heard=heard, said=said: heard.said == said)


async def test_a_level_that_is_none_is_refused(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        session = await begin(mcp.url, http)
        body: JsonObject = {"id": 1, "method": "logging/setLevel", "params": {"level": "loud"}}
        assert "-32602" in (await post(mcp.url, http, session, body)).text


async def test_streams_hear_of_servers_at_the_level_of_their_session(mcp: ServedEndpoint) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx2.AsyncClient() as http:
        quiet, loud = [await begin(mcp.url, http) for _ in range(2)]
        body: JsonObject = {"id": 1, "method": "logging/setLevel", "params": {"level": "error"}}
        async with open_get(mcp.url, http, loud) as stream, open_get(mcp.url, http, quiet) as other:
            assert '"result":{}' in (await post(mcp.url, http, loud, body)).text
            eve, ada = Caller(SCOPE, "eve"), Caller(SCOPE, "ada")
            mcp.endpoint.log(_message("info", "too little"), set())
            mcp.endpoint.log(_message("error", "another's"), {eve})
            mcp.endpoint.log(_message("error", "hers"), {ada})
            mcp.endpoint.log(_message("error", "for all"), set())
            found: list[object] = []
            while len(found) < 2:
                message = await stream.next()
                if message["method"] == "notifications/message":
                    found.append(message["params"])
            assert found == [log_params("fs", "error", None, each) for each in ("hers", "for all")]
            at = await mcp.changed()
            assert (await other.until(at))["method"] == "notifications/tools/list_changed"


@EACH_GENERATION
async def test_a_server_is_told_which_messages_are_wanted(
    harness: ServerHarness, flags: tuple[str, ...]
) -> None:
    @dataclass
    class Taker:
        """Takes messages at a level."""

        level: LogLevel
        taken: list[object] = field(default_factory=list[object])

        def take(self, message: LogMessage) -> None:
            self.taken.append((message.params["data"], message.params["logger"]))

    taker = Taker("notice")
    origin = CallOrigin(Caller(SCOPE, "mira"), UUID(int=1), CallerSide(logs=taker))
    silent = CallOrigin(Caller(SCOPE, "mira"), UUID(int=1), CallerSide())
    async with connected({"box": harness.stdio(*flags)}) as pool:
        await pool.call("box:report", {"hold": 0}, PATIENCE_S, silent)
        calling = asyncio.create_task(pool.call("box:report", {"hold": 30}, PATIENCE_S, origin))
        await eventually(lambda: len(taker.taken) >= 2)
        calling.cancel()
        pool.want_logs("debug")
    assert taker.taken == [("a notice", "box"), ("an alert", "box/disk")]


async def test_clients_of_other_revisions_set_no_level(mcp: ServedEndpoint) -> None:
    async with mcp.client() as client:
        with pytest.raises(MCPError):
            await client.set_logging_level("info")  # pyright: ignore[reportDeprecated]
