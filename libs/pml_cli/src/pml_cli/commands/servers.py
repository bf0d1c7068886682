"""Commands on the gateway's configured servers."""

from collections.abc import Mapping, Sequence
from typing import cast
from urllib.parse import quote

from rich.table import Column, Table

from pml_cli.client import Client, Json
from pml_cli.errors import CommandError
from pml_cli.markup import escape
from pml_cli.output import Output


def list_servers(client: Client, out: Output) -> None:
    """Each server's state, in name order."""
    answer = client.get("/api/servers")
    table = Table(Column("server", no_wrap=True), "state", "tools", "hints", "remarks", box=None)
    for one in cast(list[Json], answer["servers"]):
        remarks = [f"called {one['title']!r} in its file"] if one.get("title") else []
        remarks += [str(one["error"])] if one.get("error") else []
        remarks += [str(one["circuit_fault"])] if one.get("circuit_fault") else []
        remarks += [str(each) for each in cast(list[object], one.get("warnings") or [])]
        remarks += [
            f"{held['name']}: quarantined, changed {', '.join(cast(list[str], held['changed']))}"
            for held in cast(list[Json], one.get("quarantined") or [])
        ]
        remarks += [f"{one['excluded']} tools left out by its entry"] if one.get("excluded") else []
        remarks += ["tools have their own names"] if one.get("prefixed") is False else []
        hints = "trusted" if one.get("hints_trusted") else "not trusted"
        texts = (str(one["name"]), str(one["state"]), str(one["tools"]), hints, "; ".join(remarks))
        table.add_row(*map(escape, texts))
    out.show(answer, table)
    if answer.get("file_fault") and not out.as_json:
        out.note(str(answer["file_fault"]))


def reload(client: Client, out: Output, approver: Mapping[str, str]) -> None:
    """Apply a changed `mcpServers` file. `approver` are the headers that authorise it."""
    found = client.post("/api/servers/reload", {}, approver)
    lines = [
        f"{what}: {', '.join(cast(list[str], found[what]))}"
        for what in ("added", "removed", "changed", "unchanged")
        if found.get(what)
    ]
    lines += [
        f"set aside {one['name']}: {'; '.join(cast(list[str], one['faults']))}"
        for one in cast(list[Json], found.get("faulty") or [])
    ]
    out.show(found, *map(escape, lines or ["no servers are configured"]))


def diff(client: Client, out: Output, server: str, tool: str) -> None:
    """Show what a server changed in the definition of a tool in quarantine."""
    found = _chosen(_quarantine(client, server), [tool])
    if not found:
        raise CommandError(f"{server}:{tool} is not in quarantine; see `pml servers list`")
    out.show(found[0], *_diff_lines(server, found[0]))


def accept(
    client: Client, out: Output, server: str, tools: Sequence[str], approver: Mapping[str, str]
) -> None:
    """Accept the definitions that a server has changed, of some tools or all, as they are shown
    now. Tools that are not in quarantine stay as they are. `approver` are the headers that
    authorise it."""
    found = _quarantine(client, server)
    chosen = _chosen(found, tools)
    for held in chosen:
        for line in [] if out.as_json else _diff_lines(server, held):
            out.remark(line)
    if chosen:
        hashes = {str(held["name"]): held["definition_hash"] for held in chosen}
        found = client.post(f"{_path(server)}/accept", {"tools": hashes}, approver)
    names = [str(held["name"]) for held in chosen]
    left = [str(held["name"]) for held in _tools(found)]
    texts = [f"accepted {server}:{name}" for name in names] or ["nothing to accept"]
    texts += [f"still in quarantine: {server}:{name}" for name in left]
    answer = {"server": server, "accepted": names, "quarantined": left}
    out.show(answer, *map(escape, texts))


def _quarantine(client: Client, server: str) -> Json:
    return client.get(f"{_path(server)}/quarantine")


def _path(server: str) -> str:
    return f"/api/servers/{quote(server, safe='')}"


def _tools(found: Json) -> list[Json]:
    return cast(list[Json], found["tools"])


def _chosen(found: Json, names: Sequence[str]) -> list[Json]:
    return [held for held in _tools(found) if not names or held["name"] in names]


def _diff_lines(server: str, held: Json) -> list[str]:
    lines = [f"[bold]{escape(server)}:{escape(str(held['name']))}[/]"]
    for change in cast(list[Json], held["changes"]):
        for line in cast(list[str], change["diff"]):
            colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
            lines.append(f"  [{colour}]{escape(line)}[/]")
    return lines
