"""Tokens of logins at MCP servers (OAuth 2.1): sent with each request, renewed when they expire.

The SDK's provider makes the login itself, and builds and reads requests for new tokens. It lets one
request at a time through, for as long as that takes, so calls are authorised here. It also forgets
when a stored token expires and whose it is, so both are stored beside it.
"""

import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from http import HTTPStatus
from typing import Final

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, ValidationError
from typing_extensions import override

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.servers.server_config import HttpServer, OAuthClient, ServerConfig
from pml_gateway.ports import Login, Logins

log = logging.getLogger(__name__)

_EARLY_S: Final = 10.0
"""A token is renewed so long before it expires: clocks differ, and requests take time."""
_UNUSED: Final = "http://127.0.0.1/callback"


class NeedsLogin(Exception):
    """The server wants a login that only a person can make."""


async def login_auth(name: str, server: ServerConfig, logins: Logins) -> "LoginAuth | None":
    """Return what authorises requests to a server; None without a login at this very URL."""
    if not isinstance(server, HttpServer) or not server.logs_in:
        return None
    login = await logins.find(name)
    if login is None or login.url != server.url:
        return None
    try:
        return LoginAuth(_Session(name, server, logins, login))
    except ValidationError as error:
        log.warning("the login at %s cannot be used: %s", name, type(error).__name__)
        return None


class LoginAuth(httpx2.Auth):
    """Sends the access token. Raises NeedsLogin where it cannot be renewed."""

    def __init__(self, session: "_Session") -> None:
        self._session = session
        self._renewing = anyio.Lock()

    @override
    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        session = self._session
        if session.expires_soon:
            async with self._renewing:
                if session.expires_soon:
                    await session.take(await _answer((yield await session.renewal())))
        used = session.authorise(request)
        response = yield request
        if response.status_code != HTTPStatus.UNAUTHORIZED:
            return
        async with self._renewing:
            if session.access_token == used:
                await session.take(await _answer((yield await session.renewal())))
        session.authorise(request)
        yield request


async def _answer(response: httpx2.Response) -> httpx2.Response:
    """Return the answer of a token endpoint, read. Raises httpx2.HTTPStatusError for outages, which
    say nothing about the login."""
    await response.aread()
    if response.is_server_error or response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        response.raise_for_status()
    return response


class _Kept(TokenStorage):
    """Stores what the SDK's provider obtains, with what it needs to go on later."""

    def __init__(self, name: str, url: str, logins: Logins, client: OAuthClient | None) -> None:
        self.provider: OAuthClientProvider | None = None
        self._name = name
        self._url = url
        self._logins = logins
        self._given = _given_client(client)

    @override
    async def get_tokens(self) -> OAuthToken | None:
        return None  # a login begins anew

    @override
    async def set_tokens(self, tokens: OAuthToken) -> None:
        assert self.provider is not None  # noqa: S101 - set when it is built
        context = self.provider.context
        before = await self._logins.find(self._name)
        if tokens.refresh_token is None and before is not None and before.url == self._url:
            refresh_token = before.tokens.get("refresh_token")
            tokens.refresh_token = refresh_token if isinstance(refresh_token, str) else None
        expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        login = Login(
            url=self._url,
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            client=_json(context.client_info) or {},
            expires_at=expires_at,
            authorization_server=_json(context.oauth_metadata),
            resource=_json(context.protected_resource_metadata),
        )
        await self._logins.keep(self._name, login)

    @override
    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._given

    @override
    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Ignore it: it is stored with the tokens."""


class _Session:
    """The tokens of one login, and their renewal."""

    def __init__(self, name: str, server: HttpServer, logins: Logins, login: Login) -> None:
        self._provider = provider_of(name, server, logins)
        context = self._provider.context
        context.current_tokens = OAuthToken.model_validate(login.tokens)
        context.token_expiry_time = login.expires_at
        context.client_info = OAuthClientInformationFull.model_validate(login.client)
        if login.authorization_server is not None:
            context.oauth_metadata = OAuthMetadata.model_validate(login.authorization_server)
        if login.resource is not None:
            found = ProtectedResourceMetadata.model_validate(login.resource)
            context.protected_resource_metadata = found

    @property
    def access_token(self) -> str:
        """The present access token; empty where it was lost."""
        tokens = self._provider.context.current_tokens
        return "" if tokens is None else tokens.access_token

    @property
    def expires_soon(self) -> bool:
        """Whether a new token is needed now."""
        at = self._provider.context.token_expiry_time
        return at is not None and time.time() > at - _EARLY_S

    def authorise(self, request: httpx2.Request) -> str:
        """Add the access token to a request, and return it. Raises NeedsLogin where a renewal was
        refused meanwhile."""
        if not self.access_token:
            raise NeedsLogin
        request.headers["Authorization"] = f"Bearer {self.access_token}"
        return self.access_token

    async def renewal(self) -> httpx2.Request:
        """Return a request for a new token. Raises NeedsLogin."""
        if not self._provider.context.can_refresh_token():
            raise NeedsLogin
        return await self._provider._refresh_token()  # pyright: ignore[reportPrivateUsage]

    async def take(self, answer: httpx2.Response) -> None:
        """Use the new token, and store it. Raises NeedsLogin where it was refused."""
        handle = self._provider._handle_refresh_response  # pyright: ignore[reportPrivateUsage]
        if not await handle(answer):
            raise NeedsLogin


def provider_of(
    name: str,
    server: HttpServer,
    logins: Logins,
    *,
    redirect_uri: str = _UNUSED,
    open_url: Callable[[str], Awaitable[None]] | None = None,
    answered: Callable[[], Awaitable[AuthorizationCodeResult]] | None = None,
) -> OAuthClientProvider:
    """Build the SDK's provider, which makes a login at the first 401 and stores it."""
    client = server.oauth or OAuthClient()
    kept = _Kept(name, server.url, logins, client)
    metadata = OAuthClientMetadata(
        client_name="PML",
        redirect_uris=[AnyUrl(redirect_uri)],
        scope=client.scope,
    )
    provider = OAuthClientProvider(
        server.url, metadata, kept, open_url, answered, client.client_metadata_url
    )
    kept.provider = provider
    return provider


def _given_client(client: OAuthClient | None) -> OAuthClientInformationFull | None:
    """Return the client that the configuration names."""
    if client is None or client.client_id is None:
        return None
    return OAuthClientInformationFull(
        client_id=client.client_id,
        client_secret=client.client_secret,
        token_endpoint_auth_method="none" if client.client_secret is None else "client_secret_post",
    )


def _json(
    found: OAuthClientInformationFull | OAuthMetadata | ProtectedResourceMetadata | None,
) -> JsonObject | None:
    return None if found is None else found.model_dump(mode="json", exclude_none=True)
