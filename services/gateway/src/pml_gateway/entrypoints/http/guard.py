"""What is refused before any route sees it: foreign web pages, oversize bodies."""

from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pml_gateway.domain.api.origin import Names
from pml_gateway.entrypoints.http.errors import problem

PROBES = ("/healthz", "/livez")
"""Asked by supervisors, who name us as they like; they tell nothing worth stealing."""

ALLOWED_HOSTS = "PML_GATEWAY_ALLOWED_HOSTS"


class Guard:
    """An ASGI middleware around everything."""

    def __init__(self, app: ASGIApp, *, names: Names, max_body_bytes: int) -> None:
        self._app = app
        self._names = names
        self._limit = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        _, port = scope.get("server") or ("", None)
        stranger = self._names.foreign(headers.getlist("host"), headers.getlist("origin"), port)
        if stranger is not None and scope["path"] not in PROBES:
            remedy = f"name us by 127.0.0.1:{port}, or list your name in {ALLOWED_HOSTS}"
            await problem(HTTPStatus.FORBIDDEN, f"{stranger}; {remedy}")(scope, receive, send)
            return
        announced = headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > self._limit:
            await problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._too_large())(
                scope, receive, send
            )
            return
        await self._app(scope, self._counting(receive), send)

    def _counting(self, receive: Receive) -> Receive:
        """The same body, refused as soon as it is too large, announced or not."""
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._too_large())
            return message

        return counted

    def _too_large(self) -> str:
        return f"the body is larger than the {self._limit} bytes allowed"
