"""`python -m tests.servers`: connects the embedded stack to real MCP servers; exit code 1 if fewer
than expected list their tools."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import cast

import httpx2
from pydantic import JsonValue

from libs.pml_local.tests.support.harness import eventually, reachable_folder
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.composition import StackOptions
from pml_local.events import Event, PartReady
from pml_local.ports import free_port
from pml_local.stack import embedded_stack
from tests.servers.known import KNOWN, Known
from tests.servers.report import Outcome, page_of, table_of
from tests.servers.running import NotInstalled, entries, install, programs

_CACHE = Path(__file__).parents[2] / ".cache" / "servers"
_SETTLED_S = 3 * PATIENCE_S
_CALL_S = PATIENCE_S
Json = dict[str, JsonValue]


def say(line: str) -> None:
    """Print at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def run(servers: Sequence[Known]) -> list[Outcome]:
    """Install, start and connect the servers; return what became of each."""
    tools = programs(_CACHE)
    say(f"installing {len({server.package for server in servers})} packages …")
    missing = await install(servers, tools)
    chosen = [server for server in servers if server.title not in missing]
    with reachable_folder() as home:
        folder = home / "servers"
        folder.mkdir()
        async with entries(chosen, tools, folder) as configured:
            file = home / "mcp.json"
            file.write_text(json.dumps({"mcpServers": dict(configured)}))
            say(f"connecting {len(chosen)} servers …")
            found = await _connected(home, file, chosen)
    outcomes = {one.title: one for one in found}
    return [outcomes.get(each.title) or _missing(each, missing[each.title]) for each in servers]


async def _connected(home: Path, file: Path, servers: Sequence[Known]) -> list[Outcome]:
    """Run a stack on the file, and return what it says of each server."""
    policy = home / "policy.json"
    policy.write_text('{"rules": [{"pattern": "*", "verdict": "allow"}]}')
    began = time()

    def on_event(event: Event) -> None:
        nonlocal began
        if isinstance(event, PartReady) and event.name == "gateway":
            began = time()

    options = StackOptions(
        home=home / "data",
        gateway_port=free_port(),
        mcp_servers=file,
        env={"PML_GATEWAY_POLICY_FILE": str(policy)},
        servers_within=_SETTLED_S,
    )
    async with (
        embedded_stack(options, on_event) as stack,
        httpx2.AsyncClient(base_url=stack.url, timeout=_CALL_S + 10.0) as http,
    ):
        await eventually(lambda: _settled(http), within=_SETTLED_S)
        listed = cast(list[Json], (await http.get("/api/servers")).json()["servers"])
        catalog = cast(list[Json], (await http.get("/api/tools")).json()["tools"])
        by_title = {str(one.get("title") or one["name"]): one for one in listed}
        outcomes: list[Outcome] = []
        for server in servers:
            one = by_title[server.title]
            offered = sum(tool["server"] == one["name"] for tool in catalog)
            called = await _called(http, server, one) if one["state"] == "ready" else ""
            outcomes.append(_outcome(server, one, offered, began, called))
        return outcomes


async def _settled(http: httpx2.AsyncClient) -> bool:
    listed = (await http.get("/api/servers")).json()["servers"]
    return all(one["state"] == "failed" or one["announced"] for one in listed)


async def _called(http: httpx2.AsyncClient, server: Known, one: Json) -> str:
    """Call a tool through the whole stack; return its status, empty without such a tool."""
    if server.call is None:
        return ""
    tool, args = server.call
    body = {"tool": {"tool_id": f"{one['name']}:{tool}"}, "args": dict(args), "timeout": _CALL_S}
    answer: Json = {}

    async def is_known() -> bool:
        nonlocal answer
        answer = (await http.post("/api/execute", json=body)).json()
        return "There is no server" not in json.dumps(answer)

    with suppress(AssertionError):  # the catalog takes in a few hundred tools, one server at a time
        await eventually(is_known, within=_CALL_S)
    status = str(answer.get("status") or "error")
    return status if status == "success" else f"{status}: {json.dumps(answer)[:200]}"


def _outcome(server: Known, one: Json, offered: int, began: float, called: str) -> Outcome:
    ready = one["state"] == "ready" and one["tools"] == offered
    since = datetime.fromisoformat(str(one["since"])).astimezone(UTC).timestamp()
    remarks = [str(one["error"])] if one["error"] else []
    remarks += [str(each) for each in cast(list[JsonValue], one["warnings"])]
    if one["state"] == "ready" and one["tools"] != offered:
        remarks.append(f"the catalog has {offered} tools")
    return Outcome(
        title=server.title,
        package=f"{server.package} {server.release}",
        transport=str(one["transport"] or server.transport),
        protocol=str(one["protocol"] or ""),
        seconds=max(0.0, since - began) if ready else None,
        tools=cast(int, one["tools"]),
        declares=tuple(map(str, cast(list[JsonValue], one["declares"]))),
        called=called,
        ready=ready,
        remarks=tuple(remarks),
    )


def _missing(server: Known, why: str) -> Outcome:
    package = f"{server.package} {server.release}"
    return Outcome(server.title, package, server.transport, remarks=(why,))


def main() -> None:
    """Run all servers, print a table, and write a report if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--least", type=int, help="servers that must list; default: all")
    parser.add_argument(
        "--only", action="append", metavar="TITLE", help="only this one; repeatable"
    )
    parser.add_argument("--report", type=Path, help="file for the report, besides the output")
    chosen = parser.parse_args()
    servers = [one for one in KNOWN if not chosen.only or one.title in chosen.only]
    try:
        outcomes = asyncio.run(run(servers))
    except NotInstalled as error:
        raise SystemExit(str(error)) from error
    ready = [one for one in outcomes if one.ready]
    say(table_of(outcomes))
    say(f"{len(ready)} of {len(outcomes)} connected and listed")
    if chosen.report is not None:
        chosen.report.write_text(page_of(outcomes), encoding="utf-8")
    least = len(servers) if chosen.least is None else chosen.least
    failed = [one for one in outcomes if one.called not in ("", "success")]
    raise SystemExit(1 if len(ready) < least or failed else 0)


if __name__ == "__main__":
    main()
