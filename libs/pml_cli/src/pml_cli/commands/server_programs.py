"""Commands that need the gateway's own code, and run it as a program: its answers are lines of
JSON."""

import json
import subprocess
import sys
import webbrowser
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import cast

from rich.table import Column, Table

from pml_cli.client import Json
from pml_cli.errors import FAILED, USAGE, CommandError
from pml_cli.markup import escape
from pml_cli.output import Output


def check(out: Output, file: Path, *, connect: bool) -> int:
    """Show the entries of an `mcpServers` file with their faults; with `connect` their tools, too.
    Return the exit code: 1 with faults. Raises CommandError."""
    if not file.is_file():
        raise CommandError(f"there is no file {file}", USAGE)
    words = ["check", str(file), *(["--connect"] if connect else [])]
    with out.busy("connecting…" if connect else "reading…"):
        (found,) = list(_answers(words))
    if found.get("fault"):
        raise CommandError(str(found["fault"]), USAGE)
    entries = cast(list[Json], found["entries"])
    columns = (Column("name", no_wrap=True), "transport", "state", "remarks")
    table = Table(*columns, box=None)
    for one in entries:
        remarks = [f"called {one['title']!r} in the file"] if one["title"] != one["name"] else []
        for key in ("faults", "notes", "warnings"):
            remarks += [str(each) for each in cast(list[object], one.get(key) or [])]
        remarks += [str(one["error"])] if one.get("error") else []
        texts = (str(one["name"]), str(one["transport"] or ""), _state(one), "; ".join(remarks))
        table.add_row(*map(escape, texts))
    out.show(found, table if entries else "no entries")
    return FAILED if any(one["faults"] or one.get("error") for one in entries) else 0


def login(out: Output, file: Path, name: str, logins: Path, *, browser: bool) -> None:
    """Log in at a server of an `mcpServers` file; show the URL, and open it with `browser`. Raises
    CommandError."""
    for event in _answers(["login", str(file), name, "--logins", str(logins)]):
        match event["event"]:
            case "open":
                url = str(event["url"])
                out.note(f"log in at {name} in a browser on this machine:")
                out.remark(escape(url))
                if browser and not out.as_json:
                    webbrowser.open(url)
            case "done":
                shown = f"logged in at {escape(str(event['name']))}: {event['tools']} tools"
                out.show(event, f"{shown}. A running stack connects it now.")
            case _:
                raise CommandError(str(event["message"]))


def _state(one: Json) -> str:
    if one["faults"]:
        return "faulty"
    if one["disabled"]:
        return "disabled"
    if one.get("state") is None:
        return "fine"
    return f"{one['state']}, {one['tools']} tools" if one["state"] == "ready" else str(one["state"])


def _answers(words: Sequence[str]) -> Generator[Json]:
    """Run the gateway's program; yield its lines. Raises CommandError."""
    argv = [sys.executable, "-m", "pml_gateway", *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, encoding="utf-8") as program:  # noqa: S603 - our own
        assert program.stdout is not None  # noqa: S101 - a pipe
        for line in program.stdout:
            yield cast(Json, json.loads(line))
    if program.returncode:
        raise CommandError(f"`{' '.join(argv[1:4])}` ended with {program.returncode}; see above")
