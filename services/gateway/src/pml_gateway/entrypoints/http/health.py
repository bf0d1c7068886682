"""GET /healthz, /readyz and /livez."""

from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import JSONResponse

from pml_common.health import Checks, Readiness, report
from pml_gateway.entrypoints.http.routing import ERRORS
from pml_gateway.ports import ConfiguredServers, ServerStatus, ToolServers

_NOT_READY: Final[dict[int | str, dict[str, Any]]] = {
    503: {"description": "Not ready: the answer says what."}
}


def health_routes(
    checks: Checks,
    servers: ToolServers,
    configured: ConfiguredServers,
    policy_fault: Callable[[], str | None],
    readiness: Readiness,
) -> APIRouter:
    """Routes for the supervisor of this process."""
    router = APIRouter(tags=["health"], responses={405: ERRORS[405], 500: ERRORS[500]})

    @router.get("/healthz", operation_id="health", responses=_NOT_READY)
    async def health() -> JSONResponse:
        """Respond 200 if all dependencies respond. MCP servers, their file and the policy file are
        reported but do not count: an unreachable server fails only its own calls, and a file with a
        fault leaves what was before in force."""
        status, body = await report(checks)
        states = {name: _description_of(each) for name, each in servers.status().items()}
        others = {
            "policy": policy_fault() or "ok",
            "mcp_servers": states,
            "mcp_servers_file": configured.fault or "ok",
        }
        return JSONResponse({**body, **others}, status_code=status)

    @router.get("/readyz", operation_id="ready", responses={**_NOT_READY, 403: ERRORS[403]})
    async def ready() -> JSONResponse:
        """Respond 200, or 503 once this process drains: it serves requests but expects no new
        ones."""
        return readiness.answer()

    @router.get("/livez", operation_id="live")
    async def live() -> JSONResponse:
        """Respond 200 while this process serves."""
        return JSONResponse({"status": "ok"})

    return router


def _description_of(server: ServerStatus) -> str:
    state = f"{server.state}: {server.error}" if server.error else server.state
    circuit = () if server.circuit_fault is None else (server.circuit_fault,)
    return "; ".join((state, *circuit, *server.warnings))
