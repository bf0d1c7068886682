"""Changes of the entries of an `mcpServers` file."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from pml_cli.arguments import read_source
from pml_cli.asking import confirm
from pml_cli.errors import USAGE, CommandError
from pml_cli.markup import escape
from pml_cli.output import Output
from pml_common.contracts.display_names import RESERVED_NAMESPACES
from pml_common.contracts.server_names import safe_name

Entry = dict[str, JsonValue]

_QUESTION = (
    "A server describes its own tools by hints. If you trust them, tools marked read-only run "
    "without asking, are called again after a crash and in dry runs, and may be cached."
)
_CONNECTS = "`pml servers reload` or the next `pml up` connects it."


def entry_of(command: Sequence[str], url: str | None, transport: str | None = None) -> Entry:
    """Build an entry from a command or a URL. Raises CommandError."""
    if bool(command) == bool(url):
        raise CommandError("write either -- COMMAND ARGS… or --url URL", USAGE)
    if url:
        return {"url": url} if transport is None else {"type": transport, "url": url}
    return {"command": command[0], "args": list(command[1:])}


def add(out: Output, file: Path, name: str, entry: Entry, trust: bool | None) -> None:
    """Add an entry, with its hints trusted or not, to an `mcpServers` file; other entries are
    unchanged. Raises CommandError."""
    safe = safe_name(name)
    if safe in RESERVED_NAMESPACES:
        raise CommandError(f"{name!r} is the name of PML's own tools: choose another", USAGE)
    document, servers = _read(file)
    for other in servers:
        if safe_name(other) == safe:
            raise CommandError(f"{file} has a server {other!r} already: choose another name", USAGE)
    trusted = _ask_for_trust(name) if trust is None else trust
    added: Entry = {**entry, "trust": "hints" if trusted else "none"}
    servers[name] = added
    _write(file, document)
    trusting = "its hints are trusted" if trusted else "its hints are not trusted"
    addressed = "" if safe == name else f", addressed as {safe}"
    out.show(
        {"name": safe, "title": name, "file": str(file), "entry": added},
        f"added {escape(name)}{addressed} to {escape(str(file))}; {trusting}. {_CONNECTS}",
    )


def remove(out: Output, file: Path, name: str) -> None:
    """Remove the entry of this name, or of this safe name, from an `mcpServers` file. Raises
    CommandError."""
    document, servers = _read(file)
    chosen = [title for title in servers if title == name]
    chosen = chosen or [title for title in servers if safe_name(title) == name]
    if not chosen:
        known = ", ".join(servers) or "none"
        raise CommandError(f"{file} has no server {name!r}; it has: {known}", USAGE)
    removed = servers.pop(chosen[0])
    _write(file, document)
    out.show(
        {"name": safe_name(chosen[0]), "title": chosen[0], "file": str(file), "entry": removed},
        f"removed {escape(chosen[0])} from {escape(str(file))}. `pml servers reload` disconnects "
        "it.",
    )


def logout(out: Output, logins: Path, name: str) -> None:
    """Delete the tokens of the server of this name or title. Raises CommandError."""
    safe = safe_name(name)
    file = logins / f"{safe}.json"
    if not file.exists():
        raise CommandError(f"there is no login at {name!r} in {logins}", USAGE)
    file.unlink()
    out.show(
        {"name": safe}, f"logged out of {escape(safe)}; it needs a new login when it reconnects"
    )


def _ask_for_trust(name: str) -> bool:
    if not sys.stdin.isatty():
        raise CommandError(f"choose --trust-hints or --no-trust-hints for {name!r}", USAGE)
    sys.stderr.write(f"{_QUESTION}\n")
    return confirm("Trust its hints?")


def _read(file: Path) -> tuple[Entry, Entry]:
    """Read the document in a file, and in it the object of its entries. Raises CommandError."""
    try:
        document = cast(JsonValue, json.loads(read_source(str(file)))) if file.exists() else {}
    except json.JSONDecodeError as error:
        raise CommandError(
            f"{file}:{error.lineno}:{error.colno}: not plain JSON: {error.msg}. A file with "
            "comments is not rewritten, which would lose them: edit it by hand",
            USAGE,
        ) from error
    if not isinstance(document, dict):
        raise CommandError(f"{file}: the file must be a JSON object", USAGE)
    root = "servers" if "servers" in document and "mcpServers" not in document else "mcpServers"
    servers = document.setdefault(root, {})
    if not isinstance(servers, dict):
        raise CommandError(f"{file}: {root} must be a JSON object", USAGE)
    return document, servers


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
