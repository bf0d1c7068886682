"""`pml status`: people and scripts run it often, so it imports little."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from pml_cli.client import Client, Json
from pml_cli.errors import FAILED, UNREACHABLE, CommandError
from pml_cli.markup import escape
from pml_cli.output import Output
from pml_cli.render.parts import down_line, part_lines
from pml_local.ports import LOOPBACK
from pml_local.state import PartDown, PartState, document, read_state


def status(client: Client, out: Output, home: Path) -> int:
    """The gateway's health and the parts of the stack in this folder."""
    state = read_state(home)
    try:
        code, health = client.health()
    except CommandError as error:
        if state is None:
            raise CommandError(
                f"no stack runs on {home} and nothing answers at {client.url}: run `pml up`",
                UNREACHABLE,
            ) from None
        if not state.down:
            raise
        unreachable: Json = {"status": "unreachable", "error": str(error)}
        code, health = 0, unreachable
    parts: Mapping[str, PartState] = {} if state is None else state.parts
    down: Mapping[str, PartDown] = {} if state is None else state.down
    walls = _walls(parts.get("executor"))
    now = datetime.now(UTC)
    lines = [down_line(name, part, now) for name, part in down.items()]
    lines += _health_lines(health)
    if walls is not None:
        lines.append(f"sandbox walls: {escape(walls)}")
    colour = "green" if code == 200 and not down else "red"
    data = {
        "url": client.url,
        "health": health,
        "walls": walls,
        "parts": document(parts),
        "down": document(down),
    }
    headline = f"[{colour}]{health.get('status')}[/] {client.url}"
    out.show(data, headline, *lines, *part_lines(parts))
    if not code:
        return UNREACHABLE
    return 0 if code == 200 and not down else FAILED


def _health_lines(health: Json) -> list[str]:
    """A line for each check, each MCP server and the policy; only the error, if there is one."""
    if "error" in health:
        return [escape(str(health["error"]))]
    checks = cast(Json, health.get("checks") or {})
    servers = cast(Json, health.get("mcp_servers") or {})
    lines = [f"{name}: {escape(str(found))}" for name, found in checks.items()]
    lines += [f"MCP server {escape(name)}: {escape(str(found))}" for name, found in servers.items()]
    if health.get("mcp_servers_file", "ok") != "ok":
        lines.append(f"mcpServers file: {escape(str(health['mcp_servers_file']))}")
    return [*lines, f"policy: {escape(str(health.get('policy', 'ok')))}"]


def _walls(executor: PartState | None) -> str | None:
    """Confinement of this machine's sandboxes, as the executor reports it; None without a
    report."""
    if executor is None:
        return None
    try:
        _, health = Client(f"http://{LOOPBACK}:{executor.port}").health()
    except CommandError:
        return None
    walls = cast(Json, health.get("checks") or {}).get("walls")
    return None if walls is None else str(walls)
