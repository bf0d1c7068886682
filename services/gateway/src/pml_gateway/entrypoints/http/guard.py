"""Rejection of requests from foreign web pages and of oversize bodies, before any route."""

from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pml_gateway.domain.api.origin import AllowedHosts
from pml_gateway.entrypoints.http.errors import problem

PROBES = ("/healthz", "/livez")
"""Open under every host name: supervisors use any, and the responses hold no secrets."""

ALLOWED_HOSTS = "PML_GATEWAY_ALLOWED_HOSTS"


class Guard:
    """ASGI middleware around all routes."""

    def __init__(self, app: ASGIApp, *, hosts: AllowedHosts, max_body_bytes: int) -> None:
        self._app = app
        self._hosts = hosts
        self._limit = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reject the request or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        _, port = scope.get("server") or ("", None)
        rejection = self._hosts.rejection(headers.getlist("host"), headers.getlist("origin"), port)
        if rejection is not None and scope["path"] not in PROBES:
            remedy = f"use 127.0.0.1:{port}, or add the name to {ALLOWED_HOSTS}"
            await problem(HTTPStatus.FORBIDDEN, f"{rejection}; {remedy}")(scope, receive, send)
            return
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self._limit:
            await problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._too_large())(
                scope, receive, send
            )
            return
        await self._app(scope, self._counting(receive), send)

    def _counting(self, receive: Receive) -> Receive:
        """Pass the body on; reject it as soon as it is too large, whatever its declared length."""
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
        return f"the body exceeds the limit of {self._limit} bytes"
