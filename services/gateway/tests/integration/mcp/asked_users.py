"""A gateway in this process, served over HTTP, and official clients with users who answer forms."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import httpx2
from mcp import Client
from mcp.client.extension import ClientExtension
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    CallToolResult,
    ElicitRequestFormParams,
    ElicitResult,
    Implementation,
    TextContent,
)
from starlette.applications import Starlette

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.http_server import serve_http
from pml_gateway.app import mcp_endpoint
from pml_gateway.entrypoints.http.http_protocol import BoundedHttpProtocol
from pml_gateway.ports import Caller
from pml_local.ports import free_port
from services.gateway.tests.support.harness import (
    APPROVER,
    Json,
    World,
    Worlds,
)
from services.gateway.tests.support.offering import StubOffers

Answer = Callable[[], Awaitable[ElicitResult]]
APPROVE = ElicitResult(action="accept", content={"decision": "approve"})
DENY = ElicitResult(action="accept", content={"decision": "deny", "reason": "not today"})


@dataclass
class User:
    """Answers forms, in turn, and keeps what they said."""

    answers: list[ElicitResult | Answer]
    forms: list[ElicitRequestFormParams] = field(default_factory=list[ElicitRequestFormParams])

    async def answer(self, context: object, params: object) -> ElicitResult:
        """Answer one form."""
        assert isinstance(params, ElicitRequestFormParams)
        self.forms.append(params)
        answer = self.answers.pop(0)
        return answer if isinstance(answer, ElicitResult) else await answer()


@dataclass
class Asked:
    """A gateway and its address."""

    w: World
    url: str

    async def let_elicit(self, *, may: bool = True) -> Json:
        """Set whether forms count."""
        path, body = "/api/approvals/elicitation", {"may_elicit": may}
        answer = await self.w.http.post(path, json=body, headers=APPROVER)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def approval(self, workflow: object) -> Json:
        """Return a workflow's approval."""
        return (await self.w.http.get(f"/api/workflows/{workflow}/approval")).json()

    @asynccontextmanager
    async def client(
        self,
        user: User | None,
        mode: str = "auto",
        extensions: Sequence[ClientExtension] = (),
    ) -> AsyncGenerator[Client]:
        """Connect a client; without a user it shows no forms."""
        async with (
            httpx2.AsyncClient(timeout=PATIENCE_S) as http,
            Client(
                streamable_http_client(self.url, http_client=http),
                mode=mode,
                extensions=extensions,
                elicitation_callback=None if user is None else cast("Any", user.answer),
                client_info=Implementation(name="desk\x1b", version="4.2"),
            ) as client,
        ):
            yield client


@asynccontextmanager
async def asked(world: Worlds) -> AsyncGenerator[Asked]:
    """Serve a gateway until the context exits; forms do not count yet."""
    async with world() as w, _served(w) as one:
        yield one


@asynccontextmanager
async def asked_as(principal: str, one: Asked) -> AsyncGenerator[Asked]:
    """Serve the same gateway once more, for another agent of its scope, who may elicit."""
    settings = one.w.parts.settings.model_copy(update={"gateway_principal": principal})
    parts = replace(one.w.parts, settings=settings)
    elicitations, caller = parts.use_cases.elicitations, Caller(settings.scope, principal)
    await elicitations.set(caller, "noor", may_elicit=True)
    async with _served(replace(one.w, parts=parts)) as other:
        yield other


@asynccontextmanager
async def _served(w: World) -> AsyncGenerator[Asked]:
    endpoint, port = mcp_endpoint(w.parts, StubOffers()), free_port()
    app = Starlette(routes=[endpoint.route])
    async with serve_http(app, "127.0.0.1", port, BoundedHttpProtocol), endpoint.running():
        yield Asked(w, f"http://127.0.0.1:{port}/mcp")


def said(result: CallToolResult) -> Json:
    """Return the structured answer."""
    assert result.structured_content is not None, result
    return result.structured_content


def text(result: CallToolResult) -> str:
    """Return the text of an answer."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text
