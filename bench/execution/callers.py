"""A stack for benchmarks, and its callers."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

from libs.pml_local.tests.support.harness import eventually
from pml_local.composition import StackOptions
from pml_local.ports import free_port
from pml_local.stack import Stack, embedded_stack

Json = dict[str, object]
Http = httpx2.AsyncClient
STUB = {"PML_GATEWAY_STUB_TOOLS": "true"}
_KEPT_OPEN = httpx2.Limits(max_keepalive_connections=None)
"""A connection for each caller, however many there are."""


@asynccontextmanager
async def asked(
    home: Path, env: Mapping[str, str], mcp_servers: Path | None = None
) -> AsyncGenerator[tuple[Stack, Http]]:
    """Run a stack whose analyzer knows the stub tool inside the gateway, and the tools of the
    servers in an `mcpServers` file."""
    options = StackOptions(
        home=home, gateway_port=free_port(), mcp_servers=mcp_servers, env={**STUB, **env}
    )
    async with embedded_stack(options) as stack, caller_of(stack.url) as http:
        yield stack, http


@asynccontextmanager
async def caller_of(url: str) -> AsyncGenerator[Http]:
    """Connect to a gateway, once the stub tool is known."""
    async with httpx2.AsyncClient(base_url=url, timeout=60.0, limits=_KEPT_OPEN) as http:
        await eventually(lambda: _known(http), within=20.0)
        yield http


async def ask(http: Http, code: str, timeout_s: float | None = None) -> Json:
    """Run one workflow over REST; returns its response."""
    body: Json = {"code": code} if timeout_s is None else {"code": code, "timeout": timeout_s}
    answer = await http.post("/api/execute", json=body)
    return answer.json()


async def execute(http: Http, code: str) -> Json:
    """Run one workflow, which must succeed."""
    body = await ask(http, code)
    assert body["status"] == "success", body
    return body


async def _known(http: Http) -> bool:
    answer = await http.post("/api/discover", json={"intent": "echo", "type": "tool"})
    return answer.is_success and bool(answer.json()["hits"])


async def walls_of(stack: Stack) -> str:
    """The sandboxes' walls, as the executor reports them."""
    port = stack.parts["executor"].port
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
        return (await http.get("/healthz")).json()["checks"]["walls"]
