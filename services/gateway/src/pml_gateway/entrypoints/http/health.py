"""GET /healthz, /readyz and /livez."""

from collections.abc import Callable

from fastapi import APIRouter
from starlette.responses import JSONResponse

from pml_common.health import Checks, Readiness, report
from pml_gateway.ports import ServerStatus, ToolServers


def health_routes(
    checks: Checks,
    servers: ToolServers,
    policy_fault: Callable[[], str | None],
    readiness: Readiness,
) -> APIRouter:
    """For whatever supervises this process."""
    router = APIRouter(tags=["health"])

    @router.get("/healthz", operation_id="health")
    async def health() -> JSONResponse:
        """200 when what we need is there. MCP servers and the policy file are told, too, but do
        not count: a server that is away fails its own calls only, and of a file with a fault what
        it said before holds."""
        status, body = await report(checks)
        states = {name: _told(each) for name, each in servers.status().items()}
        told = {"policy": policy_fault() or "ok", "mcp_servers": states}
        return JSONResponse({**body, **told}, status_code=status)

    @router.get("/readyz", operation_id="ready")
    async def ready() -> JSONResponse:
        """200, or 503 once this process stops: it answers what comes, and wants no more."""
        return readiness.answer()

    @router.get("/livez", operation_id="live")
    async def live() -> JSONResponse:
        """200 while this process serves."""
        return JSONResponse({"status": "ok"})

    return router


def _told(server: ServerStatus) -> str:
    state = f"{server.state}: {server.error}" if server.error else server.state
    return "; ".join((state, *server.warnings))
