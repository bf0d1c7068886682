"""A login at an MCP server (OAuth 2.1): in a browser, whose answer is awaited on loopback."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from mcp.shared.auth import AuthorizationCodeResult

from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.adapters.login_files import LoginFiles
from pml_gateway.adapters.mcp_client.connection import Limits, UpstreamConnection
from pml_gateway.adapters.mcp_client.errors import describe
from pml_gateway.adapters.mcp_client.oauth import provider_of
from pml_gateway.adapters.servers_file import read_file
from pml_gateway.domain.servers.server_config import HttpServer
from pml_gateway.domain.servers.servers_file import ServerEntry, ServersInvalid

_LOOPBACK: Final = "127.0.0.1"
_PATH: Final = "/callback"
_LONGEST_LINE: Final = 16 * 1024
_DONE: Final = "You are logged in. This page can be closed."

Tell = Callable[[JsonObject], None]


class LoginFailed(Exception):
    """No login was made; the message says why."""


@dataclass
class _Callback:
    """The answer to one authorization request, which is known by its `state`."""

    answer: asyncio.Future[AuthorizationCodeResult]
    state: str = ""


async def login(
    name: str,
    file: Path,
    logins: LoginFiles,
    environment: Mapping[str, str],
    within_s: float,
    tell: Tell,
) -> None:
    """Log in at the server of this name, title or safe name, and store the tokens; `tell` gets the
    URL to open. Raises LoginFailed."""
    entry, server = await _server(name, file, environment)
    async with _listening(server) as (redirect_uri, callback):

        async def open_url(url: str) -> None:
            if urlsplit(url).scheme not in ("http", "https"):
                raise LoginFailed(f"{entry.name} names no web page to log in at")
            callback.state = parse_qs(urlsplit(url).query).get("state", [""])[0]
            tell({"event": "open", "url": url})

        async def answered() -> AuthorizationCodeResult:
            return await callback.answer

        auth = provider_of(
            entry.name,
            server,
            logins,
            redirect_uri=redirect_uri,
            open_url=open_url,
            answered=answered,
        )
        limits = Limits(connect_timeout_s=within_s)
        connection = UpstreamConnection(entry.name, server, environment, limits, _admit, auth)
        try:
            await connection.run(on_ready=lambda: connection.close("logged in"))
        except LoginFailed:
            raise
        except Exception as error:
            why = connection.transport.fault or describe(error)
            raise LoginFailed(f"the login at {entry.name} failed: {why}") from error
    if callback.state == "":
        raise LoginFailed(f"{entry.name} is connected without a login; none was made")
    tell({"event": "done", "name": entry.name, "tools": len(connection.tools)})


async def _admit(server: str, tools: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
    return tools


async def _server(
    name: str, file: Path, environment: Mapping[str, str]
) -> tuple[ServerEntry, HttpServer]:
    try:
        entries = await asyncio.to_thread(read_file, file, environment)
    except ServersInvalid as error:
        raise LoginFailed(str(error)) from error
    entry = next((one for one in entries if name in (one.name, one.title)), None)
    if entry is None:
        known = ", ".join(one.name for one in entries) or "none"
        raise LoginFailed(f"{file} has no server {name!r}; it has: {known}")
    if entry.faults:
        raise LoginFailed("; ".join(entry.faults))
    if not isinstance(entry.server, HttpServer):
        raise LoginFailed(f"{entry.name} is not reached over HTTP, so there is no login")
    if not entry.server.logs_in:
        raise LoginFailed(
            f"{entry.name} has a token in its entry, which is sent instead of a login"
        )
    return entry, entry.server


@asynccontextmanager
async def _listening(server: HttpServer) -> AsyncGenerator[tuple[str, _Callback]]:
    """Listen on loopback for the browser's return; yield the address, and what it will hold."""
    callback = _Callback(asyncio.get_running_loop().create_future())

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = (await reader.readline()).decode(errors="replace")
            status, text = _taken(line, callback)
            body = f"<!doctype html><meta charset=utf-8><title>PML</title><p>{text}</p>".encode()
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}"
            writer.write(f"{head}\r\nConnection: close\r\n\r\n".encode() + body)
            await writer.drain()
        except (OSError, ValueError):  # gone, or a line without end
            return
        finally:
            writer.close()

    port = server.oauth.callback_port if server.oauth else None
    try:
        listener = await asyncio.start_server(handle, _LOOPBACK, port or 0, limit=_LONGEST_LINE)
    except OSError as error:
        raise LoginFailed(f"port {port} for the browser's return is taken: {error}") from error
    async with listener:
        bound = listener.sockets[0].getsockname()[1]
        yield f"http://{_LOOPBACK}:{bound}{_PATH}", callback


def _taken(line: str, callback: _Callback) -> tuple[str, str]:
    """Take the answer in a request's first line, if it is that; return status and text to show."""
    words = line.split(" ")
    url = urlsplit(words[1] if len(words) > 1 else "")
    given = {key: values[0] for key, values in parse_qs(url.query).items()}
    if url.path != _PATH or not callback.state or given.get("state") != callback.state:
        return "404 Not Found", "This is not the answer to the login that is under way."
    if callback.answer.done():
        return "200 OK", _DONE
    if "code" not in given:
        why = given.get("error_description") or given.get("error") or "no code was given"
        callback.answer.set_exception(LoginFailed(f"the login was refused: {why}"))
        return "400 Bad Request", "The login was refused."
    callback.answer.set_result(
        AuthorizationCodeResult(code=given["code"], state=given["state"], iss=given.get("iss"))
    )
    return "200 OK", _DONE
