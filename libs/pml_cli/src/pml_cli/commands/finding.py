"""Commands that list what can be called."""

from typing import cast

from rich.table import Column, Table

from pml_cli.client import Client, Json
from pml_cli.markup import escape
from pml_cli.output import Output
from pml_cli.render.use import health_of
from pml_cli.render.values import short


def discover(client: Client, out: Output, intent: str, kind: str, limit: int) -> None:
    """Tools and capabilities for an intent, best first."""
    with out.busy("searching…"):
        answer = client.post("/api/discover", {"intent": intent, "type": kind, "limit": limit})
    hits = cast(list[Json], answer["hits"])
    table = Table("score", "type", "name", "description", box=None)
    for hit in hits:
        name = hit["id"] if hit["type"] == "tool" else hit["name"]
        score = f"{cast(float, hit['score']):.2f}"
        text = escape(short(str(hit["description"]), 70))
        table.add_row(score, str(hit["type"]), escape(str(name)), text)
        if hit.get("health") in ("degraded", "failing"):
            table.add_row("", "", "", health_of(hit))
        called = escape(short(str(hit.get("signature") or ""), 200))
        table.add_row("", "", "", f"[dim]{called}[/]")
    if answer.get("degraded"):
        out.note("found by words alone: the vector index or the embedding model does not answer")
    out.show(answer, table if hits else "[dim]no results[/]")


def tools(client: Client, out: Output) -> None:
    """Every tool of every connected server."""
    answer = client.get("/api/tools")
    table = Table(Column("tool", no_wrap=True), "hints", "result", "description", box=None)
    for tool in cast(list[Json], answer["tools"]):
        hints = cast(Json, tool.get("annotations") or {})
        named = ", ".join(name for name, given in hints.items() if given)
        claims = cast(Json, tool.get("claims") or {})
        claimed = ", ".join(name for name, given in claims.items() if given)
        named += f"claims {claimed}, not trusted" if claimed else ""
        text = escape(short(str(tool.get("description") or ""), 70))
        learned = "learned" if tool.get("learned_output") is not None else ""
        typed = "declared" if tool.get("output_schema") is not None else learned
        table.add_row(escape(f"{tool['server']}:{tool['name']}"), named, typed, text)
    out.show(answer, table)
    out.remarks(cast(list[str], answer.get("notices") or []))
