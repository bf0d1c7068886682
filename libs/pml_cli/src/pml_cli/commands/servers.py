"""Commands on a stack's `mcpServers` file and the gateway's connected servers."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import typer
from pydantic import JsonValue
from rich.markup import escape
from rich.table import Column, Table

from pml_cli.arguments import read_object
from pml_cli.client import Client, Json
from pml_cli.errors import USAGE, CommandError
from pml_cli.output import Output

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
        remarks = [str(one["error"])] if one.get("error") else []
        remarks += [str(each) for each in cast(list[object], one.get("warnings") or [])]
        hints = "trusted" if one.get("hints_trusted") else "not trusted"
        texts = (str(one["name"]), str(one["state"]), str(one["tools"]), hints, "; ".join(remarks))
        table.add_row(*map(escape, texts))
    out.show(answer, table)


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
