"""GET /docs: Swagger UI for the REST interface, with scripts from this host only.

`fastapi-offline` ships Swagger UI's files; its code is not used.
"""

from collections.abc import Awaitable, Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

from fastapi import APIRouter
from starlette.responses import FileResponse, HTMLResponse, Response

_FILES: Final = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
}
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Restrict the page to this host, whatever the scripts contain; no inline scripts."""

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>PML</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
_START: Final = """SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  layout: "BaseLayout",
  deepLinking: true,
  showExtensions: true,
  showCommonExtensions: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIBundle.SwaggerUIStandalonePreset],
});
"""


def docs_routes() -> APIRouter:
    """Routes of the page and its assets."""
    router = APIRouter(include_in_schema=False)
    shipped = Path(str(distribution("fastapi-offline").locate_file("fastapi_offline/static")))

    @router.get("/docs")
    async def docs() -> HTMLResponse:
        return HTMLResponse(_PAGE, headers=_HEADERS)

    @router.get("/docs/start.js")
    async def start() -> Response:
        return Response(_START, media_type="text/javascript", headers=_HEADERS)

    for name, media_type in _FILES.items():
        router.add_api_route(f"/docs/{name}", _file(shipped / name, media_type))
    return router


def _file(path: Path, media_type: str) -> Callable[[], Awaitable[FileResponse]]:
    async def file() -> FileResponse:
        return FileResponse(path, media_type=media_type, headers=_HEADERS)

    return file
