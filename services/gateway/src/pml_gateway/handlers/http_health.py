"""GET /healthz and /livez."""

from fastapi import APIRouter
from starlette.responses import JSONResponse

from pml_common.health import Checks, report
from pml_gateway.ports import ToolServers


def health_routes(checks: Checks, servers: ToolServers) -> APIRouter:
    """For whatever supervises this process."""
    router = APIRouter(tags=["health"])

    @router.get("/healthz", operation_id="health")
    async def health() -> JSONResponse:
        """200 when what we need is there. MCP servers are told, too, but do not count: one that
        is away fails its own calls only."""
        status, body = await report(checks)
        states = {name: each.error or each.state for name, each in servers.status().items()}
        return JSONResponse({**body, "mcp_servers": states}, status_code=status)

    @router.get("/livez", operation_id="live")
    async def live() -> JSONResponse:
        """200 while this process serves."""
        return JSONResponse({"status": "ok"})

    return router
