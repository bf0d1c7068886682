"""An authorization server and an MCP server behind it, each on a port of loopback, of the SDK's own
parts. Whoever asks is authorised at once, as by a person who clicks."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override

from libs.pml_local.tests.support.harness import eventually
from pml_gateway.domain.servers.server_config import HttpServer
from pml_local.ports import free_port


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Issues tokens that live `life_s`; `clients`, codes and tokens are kept in memory."""

    def __init__(self) -> None:
        self.life_s = 3600
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.renewable: dict[str, RefreshToken] = {}
        self.renewals = 0

    @override
    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    @override
    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    @override
    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        code = AuthorizationCode(
            code=secrets.token_hex(20),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    @override
    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    @override
    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issue(client.client_id, authorization_code.resource)

    @override
    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.renewable.get(refresh_token)

    @override
    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.renewable[refresh_token.token]
        self.renewals += 1
        return self._issue(client.client_id, refresh_token.resource)

    @override
    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    @override
    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)

    def _issue(self, client_id: str, resource: str | None) -> OAuthToken:
        access = AccessToken(
            token=secrets.token_hex(20), client_id=client_id, scopes=[], resource=resource
        )
        renewable = RefreshToken(
            token=secrets.token_hex(20), client_id=client_id, scopes=[], resource=resource
        )
        self.access[access.token] = access
        self.renewable[renewable.token] = renewable
        return OAuthToken(
            access_token=access.token, expires_in=self.life_s, refresh_token=renewable.token
        )


@dataclass
class Guarded:
    """An MCP server that wants a token, and its authorization server. `requests` counts those that
    reached the MCP server; its token endpoint is `away` on demand."""

    server: HttpServer
    provider: Provider
    requests: int = 0
    away: bool = False
    entry: Mapping[str, object] = field(default_factory=dict[str, object])


@asynccontextmanager
async def guarded(entry: Mapping[str, object] | None = None) -> AsyncGenerator[Guarded]:
    """Run both servers until the context exits; `entry` has more fields of the MCP server's."""
    issuer, port = f"http://127.0.0.1:{free_port()}", free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    provider, fields = Provider(), {"url": url, **(entry or {})}
    one = Guarded(HttpServer.model_validate(fields), provider, entry=fields)
    mcp = MCPServer(
        "guarded",
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(issuer),
            resource_server_url=AnyHttpUrl(url),
            validate_token_resource=True,
        ),
        token_verifier=ProviderTokenVerifier(provider),
    )

    @mcp.tool()
    def greet(name: str) -> str:
        """Greet."""
        return f"Hello {name}"

    assert greet

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        one.requests += scope["type"] == "http" and scope["path"] == "/mcp"
        await app(scope, receive, send)

    async def token_or_outage(scope: Scope, receive: Receive, send: Send) -> None:
        if one.away and scope["type"] == "http" and scope["path"] == "/token":
            await Response(status_code=503)(scope, receive, send)
        else:
            await authorization(scope, receive, send)

    app: ASGIApp = mcp.streamable_http_app(json_response=True)
    authorization = Starlette(
        routes=create_auth_routes(
            provider,
            AnyHttpUrl(issuer),
            client_registration_options=ClientRegistrationOptions(enabled=True),
        )
    )
    issuer_port = int(issuer.rpartition(":")[2])
    async with _serving(counted, port), _serving(token_or_outage, issuer_port):
        yield one


@asynccontextmanager
async def _serving(app: Any, port: int) -> AsyncGenerator[None]:
    config = uvicorn.Config(
        app, port=port, log_level="error", timeout_graceful_shutdown=1, log_config=None
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())  # pyright: ignore[reportPrivateUsage] # without signals
    try:
        await eventually(lambda: server.started)
        yield
    finally:
        server.should_exit = True
        await task
