"""Requests authorised by a login, driven by hand: what is sent, and what an answer leads to."""

import time
from collections.abc import AsyncGenerator

import httpx2
import pytest

from pml_gateway.adapters.mcp_client.oauth import LoginAuth, NeedsLogin, login_auth
from pml_gateway.adapters.process_logins import ProcessLogins
from pml_gateway.domain.servers.server_config import HttpServer
from pml_gateway.ports import Login

URL = "https://mcp.example/mcp"
SERVER = HttpServer(url=URL)
TOKEN_URL = "https://as.example/oauth/token"
AS = {
    "issuer": "https://as.example",
    "authorization_endpoint": "https://as.example/oauth/authorize",
    "token_endpoint": TOKEN_URL,
}
FRESH = {"access_token": "two", "token_type": "Bearer", "expires_in": 3600}

Flow = AsyncGenerator[httpx2.Request, httpx2.Response]


def _login(expires_in_s: float, **tokens: str) -> Login:
    return Login(
        url=URL,
        tokens={"access_token": "one", "token_type": "Bearer", **tokens},
        client={"client_id": "c"},
        expires_at=time.time() + expires_in_s,
        authorization_server=dict(AS),
    )


async def _auth(login: Login) -> tuple[LoginAuth, ProcessLogins]:
    logins = ProcessLogins()
    await logins.keep("box", login)
    auth = await login_auth("box", SERVER, logins)
    assert auth is not None
    return auth, logins


def _flow(auth: LoginAuth) -> Flow:
    return auth.async_auth_flow(httpx2.Request("POST", URL))


def _response(status: int, **body: object) -> httpx2.Response:
    return httpx2.Response(status, json=body, request=httpx2.Request("POST", TOKEN_URL))


def _sent(request: httpx2.Request) -> str:
    return request.headers["authorization"]


async def test_a_token_is_renewed_before_it_expires_where_its_server_said() -> None:
    auth, logins = await _auth(_login(5.0, refresh_token="r"))
    flow = _flow(auth)
    renewal = await anext(flow)
    assert str(renewal.url) == TOKEN_URL
    assert b"grant_type=refresh_token&refresh_token=r&client_id=c" in renewal.content
    assert _sent(await flow.asend(_response(200, **FRESH))) == "Bearer two"
    kept = await logins.find("box")
    assert kept is not None
    # An authorization server that does not rotate leaves the refresh token out.
    assert (kept.tokens["access_token"], kept.tokens["refresh_token"]) == ("two", "r")
    assert kept.authorization_server is not None
    assert kept.authorization_server["token_endpoint"] == TOKEN_URL
    assert kept.expires_at is not None
    assert kept.expires_at > time.time() + 3000


async def test_a_refused_token_is_renewed_once_by_whoever_is_first() -> None:
    auth, _ = await _auth(_login(3600.0, refresh_token="r"))
    first, second = _flow(auth), _flow(auth)
    assert [_sent(await anext(flow)) for flow in (first, second)] == ["Bearer one"] * 2
    await first.asend(_response(401))
    assert _sent(await first.asend(_response(200, **FRESH))) == "Bearer two"
    assert _sent(await second.asend(_response(401))) == "Bearer two"
    with pytest.raises(StopAsyncIteration):
        await second.asend(_response(401))


async def test_a_refused_renewal_wants_a_login_of_every_request() -> None:
    auth, logins = await _auth(_login(3600.0, refresh_token="r"))
    first, second = _flow(auth), _flow(auth)
    for flow in (first, second):
        await anext(flow)
    await first.asend(_response(401))
    with pytest.raises(NeedsLogin):
        await first.asend(_response(400, error="invalid_grant"))
    with pytest.raises(NeedsLogin):
        await second.asend(_response(401))
    with pytest.raises(NeedsLogin):
        await anext(_flow(auth))
    kept = await logins.find("box")
    assert kept is not None
    assert kept.tokens["access_token"] == "one"


async def test_an_outage_of_the_token_endpoint_says_nothing_about_the_login() -> None:
    auth, _ = await _auth(_login(3600.0, refresh_token="r"))
    flow = _flow(auth)
    await anext(flow)
    await flow.asend(_response(401))
    with pytest.raises(httpx2.HTTPStatusError):
        await flow.asend(_response(503))
    assert _sent(await anext(_flow(auth))) == "Bearer one"


async def test_without_a_refresh_token_a_refused_token_wants_a_login() -> None:
    auth, _ = await _auth(_login(3600.0))
    flow = _flow(auth)
    await anext(flow)
    with pytest.raises(NeedsLogin):
        await flow.asend(_response(401))


async def test_a_login_that_cannot_be_used_is_none(caplog: pytest.LogCaptureFixture) -> None:
    logins = ProcessLogins()
    await logins.keep("box", Login(url=URL, tokens={"token": "hush"}, client={}))
    assert await login_auth("box", SERVER, logins) is None
    assert "the login at box cannot be used" in caplog.text
    assert "hush" not in caplog.text
