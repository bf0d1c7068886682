"""Commands on a stack's `mcpServers` file and the gateway's connected servers."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast
from urllib.parse import quote

import typer
from pydantic import JsonValue
from rich.markup import escape
from rich.table import Column, Table

from pml_cli.arguments import read_object
from pml_cli.client import Client, Json
from pml_cli.errors import USAGE, CommandError
from pml_cli.output import Output
from pml_common.contracts.display_names import RESERVED_NAMESPACES

Entry = dict[str, JsonValue]

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_QUESTION = (
    "A server describes its own tools by hints. If you trust them, tools marked read-only run "
    "without asking, are called again after a crash and in dry runs, and may be cached."
)


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
        hints = "trusted" if one.get("hints_trusted") else "not trusted"
        texts = (str(one["name"]), str(one["state"]), str(one["tools"]), hints, "; ".join(remarks))
        table.add_row(*map(escape, texts))
    out.show(answer, table)
    if answer.get("file_fault") and not out.as_json:
        out.note(str(answer["file_fault"]))


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
            out.notes.print(line, soft_wrap=True)
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


def entry_of(command: Sequence[str], url: str | None) -> Entry:
    """Build an entry from a command or a URL. Raises CommandError."""
    if bool(command) == bool(url):
        raise CommandError("write either -- COMMAND ARGS… or --url URL", USAGE)
    if url:
        return {"url": url}
    return {"command": command[0], "args": list(command[1:])}


def add(out: Output, file: Path, name: str, entry: Entry, trust: bool | None) -> None:
    """Add an entry, with its hints trusted or not, to an `mcpServers` file; other entries are
    unchanged. Raises CommandError."""
    if not _NAME.fullmatch(name):
        rule = "use a-z, 0-9, _ and -, starting with a letter or digit"
        raise CommandError(f"{name!r} is not a valid server name: {rule}", USAGE)
    if name in RESERVED_NAMESPACES:
        raise CommandError(f"{name!r} is the name of PML's own tools: choose another", USAGE)
    document = read_object(str(file), "the file") if file.exists() else {}
    servers = document.setdefault("mcpServers", {})
    if not isinstance(servers, dict):
        raise CommandError(f"{file}: mcpServers must be a JSON object", USAGE)
    if name in servers:
        raise CommandError(f"{file} has a server {name!r} already: choose another name", USAGE)
    trusted = _ask_for_trust(name) if trust is None else trust
    added: Entry = {**entry, "trust": "hints" if trusted else "none"}
    servers[name] = added
    _write(file, document)
    trusting = "its hints are trusted" if trusted else "its hints are not trusted"
    out.show(
        {"name": name, "file": str(file), "entry": added},
        f"added {escape(name)} to {escape(str(file))}; {trusting}. `pml up` connects it.",
    )


def _ask_for_trust(name: str) -> bool:
    if not sys.stdin.isatty():
        raise CommandError(f"choose --trust-hints or --no-trust-hints for {name!r}", USAGE)
    typer.echo(_QUESTION, err=True)
    return typer.confirm("Trust its hints?", default=False, err=True)


def _write(file: Path, document: Entry) -> None:
    """Replace the file atomically; private to its owner, since entries hold secrets."""
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_name(f"{file.name}.new")
    try:
        aside.unlink(missing_ok=True)
        aside.touch(mode=0o600)
        text = json.dumps(document, indent=2, ensure_ascii=False)
        aside.write_text(text + "\n", encoding="utf-8")
        aside.replace(file)
    except OSError as error:
        raise CommandError(f"cannot write {file}: {error.strerror}") from error
