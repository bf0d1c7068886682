"""The REST interface as one application (F8)."""

from collections.abc import Collection, Sequence
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute

from pml_gateway.handlers.http_errors import add_error_handlers
from pml_gateway.handlers.http_guard import Guard


def build_app(
    routers: Sequence[APIRouter],
    mounted: Sequence[BaseRoute],
    *,
    hosts: Collection[str],
    max_body_bytes: int,
) -> FastAPI:
    """All routes behind one guard; `mounted` are those that REST does not describe."""
    app = FastAPI(
        title="PML",
        version=version("pml-gateway"),
        summary="Procedural memory for agents: programs that are read before they run, and kept.",
    )
    for router in routers:
        app.include_router(router)
    app.router.routes.extend(mounted)
    add_error_handlers(app)
    app.add_middleware(Guard, hosts=hosts, max_body_bytes=max_body_bytes)
    return app
