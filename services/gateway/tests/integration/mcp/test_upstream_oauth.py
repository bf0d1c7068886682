"""Logins at MCP servers, with a real authorization server: made, used, renewed, wanted."""

import asyncio
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path

import httpx2
import pytest
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.tool import JsonObject
from pml_gateway.adapters.login_files import LoginFiles
from pml_gateway.entrypoints.commands.login import LoginFailed, login
from pml_local.ports import free_port
from services.gateway.tests.integration.mcp.authorization import Guarded, guarded
from services.gateway.tests.integration.mcp.harness import connected

pytestmark = pytest.mark.integration

WANTED = "needs login: pml servers login box"


class Browser:
    """Follows the URL that a login opens, as a person does; `clicks` changes it first."""

    def __init__(self, answer: Mapping[str, str] | None = None) -> None:
        self.events: list[JsonObject] = []
        self.pages: list[str] = []
        self._answer = answer
        self._visits: list[asyncio.Task[None]] = []

    def __call__(self, event: JsonObject) -> None:
        self.events.append(event)
        if event["event"] == "open":
            self._visits.append(asyncio.create_task(self._visit(str(event["url"]))))

    async def _visit(self, url: str) -> None:
        async with httpx2.AsyncClient() as http:
            redirect = await http.get(url)
            back = httpx2.URL(redirect.headers["location"])
            stray = await http.get(back.copy_set_param("state", "another"))
            self.pages.append(f"{stray.status_code}")
            if self._answer is not None:
                state = back.params["state"]
                back = back.copy_with(params={**self._answer, "state": state})
            self.pages.append((await http.get(back)).text)


async def _log_in(one: Guarded, folder: Path, browser: Browser) -> LoginFiles:
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"Box": dict(one.entry)}}))
    logins = LoginFiles(folder / "logins")
    await login("Box", file, logins, {}, PATIENCE_S, browser)
    return logins


async def test_a_login_is_made_once_and_renewed_from_then_on(tmp_path: Path) -> None:
    async with guarded() as one:
        browser = Browser()
        logins = await _log_in(one, tmp_path, browser)
        assert browser.events[-1] == {"event": "done", "name": "box", "tools": 1}
        assert browser.pages[0] == "404"
        assert "You are logged in" in browser.pages[1]
        file = tmp_path / "logins" / "box.json"
        assert os.stat(file).st_mode & 0o777 == 0o600  # noqa: PTH116 - only its mode
        async with connected({"box": one.server}, logins=logins) as pool:
            assert (await pool.call("box:greet", {"name": "a"}, PATIENCE_S)).status == "ok"
            assert one.provider.renewals == 0
            one.provider.access.clear()
            several = [pool.call("box:greet", {"name": "a"}, PATIENCE_S) for _ in range(5)]
            assert {(each.status) for each in await asyncio.gather(*several)} == {"ok"}
            assert one.provider.renewals == 1

        one.provider.access.clear()  # as after a long pause: the stored token has expired
        kept = await logins.find("box")
        assert kept is not None
        async with connected({"box": one.server}, logins=logins) as pool:
            assert (await pool.call("box:greet", {"name": "a"}, PATIENCE_S)).status == "ok"
            assert one.provider.renewals == 2
        assert await logins.find("box") != kept


async def test_a_server_that_wants_a_login_is_left_alone_until_there_is_one(
    tmp_path: Path,
) -> None:
    async with guarded() as one:
        logins = LoginFiles(tmp_path / "logins")
        async with connected({"box": one.server}, logins=logins) as pool:
            status = pool.status()["box"]
            assert (status.state, status.error, status.needs_login) == ("failed", WANTED, True)
            asked = one.requests
            refused = await pool.call("box:greet", {"name": "a"}, PATIENCE_S)
            assert WANTED in str(refused.message)
            await asyncio.gather(*(pool.reach("box", 0.2) for _ in range(3)))
            assert one.requests == asked

            await _log_in(one, tmp_path, Browser())
            await eventually(lambda: pool.status()["box"].state == "ready")
            assert not pool.status()["box"].needs_login

            one.away = True
            one.provider.access.clear()
            outage = await pool.call("box:greet", {"name": "a"}, 1.0)
            assert outage.status != "ok"
            assert not pool.status()["box"].needs_login
            one.away = False
            again = await pool.call("box:greet", {"name": "a"}, PATIENCE_S)
            assert again.status == "ok"

            one.provider.access.clear()
            one.provider.renewable.clear()
            gone = await pool.call("box:greet", {"name": "a"}, PATIENCE_S)
            assert WANTED in str(gone.message)


async def test_a_token_of_the_entry_is_sent_in_place_of_a_login(tmp_path: Path) -> None:
    async with guarded() as one:
        logins = await _log_in(one, tmp_path, Browser())
        (token,) = one.provider.access
        fields = {**one.entry, "oauth": {"token": token}}
        own = one.server.model_validate(fields)
        wrong = one.server.model_copy(update={"headers": {"authorization": "Bearer x"}})
        elsewhere = one.server.model_copy(update={"url": f"{one.server.url}?other"})
        without = one.server.model_validate({**one.entry, "oauth": False})
        servers = {"box": own, "wrong": wrong, "elsewhere": elsewhere, "without": without}
        login = await logins.find("box")
        assert login is not None
        for name in ("wrong", "elsewhere", "without"):
            await logins.keep(name, login)
        async with connected(servers, logins=logins) as pool:
            found = {name: status.error for name, status in pool.status().items()}
        refused = "it refuses the token of its entry (HTTP 401): change it, then "
        refused += "`pml servers reload`"
        assert found == {
            "box": None,
            "wrong": refused,
            "elsewhere": "needs login: pml servers login elsewhere",  # the login is another URL's
            "without": refused,
        }


async def test_a_configured_client_is_used_as_it_is(tmp_path: Path) -> None:
    port = free_port()
    client: dict[str, object] = {
        "clientId": "known",
        "clientSecret": "s",
        "callbackPort": port,
        "scopes": [],
    }
    async with guarded({"oauth": client}) as one:
        one.provider.clients["known"] = OAuthClientInformationFull(
            client_id="known",
            client_secret="s",
            redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}/callback")],
            token_endpoint_auth_method="client_secret_post",
        )
        logins = await _log_in(one, tmp_path, Browser())
        assert list(one.provider.clients) == ["known"]
        one.provider.access.clear()
        async with connected({"box": one.server}, logins=logins) as pool:
            assert (await pool.call("box:greet", {"name": "a"}, PATIENCE_S)).status == "ok"
        with (
            socket.create_server(("127.0.0.1", port)),
            pytest.raises(LoginFailed, match=f"port {port} for the browser's return is taken"),
        ):
            await _log_in(one, tmp_path, Browser())


async def test_a_login_that_is_refused_says_so(tmp_path: Path) -> None:
    async with guarded() as one:
        browser = Browser({"error": "access_denied", "error_description": "not you"})
        with pytest.raises(LoginFailed, match="the login was refused: not you"):
            await _log_in(one, tmp_path, browser)
        assert "refused" in browser.pages[1]
        assert not (tmp_path / "logins" / "box.json").exists()


@pytest.mark.parametrize(
    ("name", "entry", "why"),
    [
        ("other", {"url": "http://127.0.0.1:9/"}, "has no server 'other'; it has: box"),
        ("box", {"command": "x"}, "not reached over HTTP"),
        ("box", {}, 'needs either "command"'),
        ("box", {"url": "http://127.0.0.1:9/", "oauth": {"token": "t"}}, "has a token"),
        ("box", {"url": "http://127.0.0.1:9/"}, "cannot connect to http://127.0.0.1:9/"),
    ],
)
async def test_a_server_without_login_is_refused(
    tmp_path: Path, name: str, entry: dict[str, object], why: str
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"box": entry}}))
    with pytest.raises(LoginFailed, match=why):
        await login(name, file, LoginFiles(tmp_path), {}, PATIENCE_S, Browser())
