"""Generates the drawing and structure below each program of docs/analysis.md.

`write` updates the page, `check` fails if it is out of date. A `ts` fence may name what is shown:
nothing (drawing and structure), `decision`, `rejected`, `json`, `instrumented`.
"""

import io
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import UUID

from rich.console import Console, RenderableType

from pml_analysis.analysis import Analysis, Rejection, analyze
from pml_analysis.decision.capabilities import Capability, Library
from pml_analysis.report import to_json
from pml_cli.documents import read_tools
from pml_cli.render.analysis import analysis_report, rejection_report
from pml_cli.render.structure import structure_tree
from pml_common.contracts.capability import CapabilityDescription
from pml_common.contracts.decision import Policy
from pml_common.contracts.structure import Edge, StaticStructure
from pml_common.drawing.mermaid import mermaid
from pml_common.drawing.text import mapping_text

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "analysis.md"
CATALOG = DOCS / "analysis-tools.json"
WIDTH = 96

PROGRAM = re.compile(
    r"^```ts(?P<how>[^\n]*)\n(?P<code>.*?)^```\n"
    r"(?:<!-- drawn by make docs -->\n.*?^<!-- /drawn -->\n)?",
    re.MULTILINE | re.DOTALL,
)
TIDY = Capability(
    CapabilityDescription(
        capability_id=UUID("0b0a7d38-6d1b-5c58-9a3a-3b7e0c6c8f21"),
        name="notes:tidy",
        code="",
        code_hash="b7" * 32,
        description="Remove the empty notes of a folder.",
        parameters_schema={
            "type": "object",
            "properties": {"folder": {"type": "string"}},
            "required": ["folder"],
        },
    ),
    tools=(("fs", "list"), ("fs", "write")),
)


def drawn(text: str) -> str:
    """The page, with the analyzer's output below each program."""
    tools = read_tools(str(CATALOG))
    library = Library.of([TIDY])

    def below(found: re.Match[str]) -> str:
        code, how = found["code"], found["how"].strip()
        outcome = analyze(code, tools=tools, policy=Policy(), capabilities=library)
        if isinstance(outcome, Rejection) != (how == "rejected"):
            line = text.count("\n", 0, found.start()) + 1
            told = printed(*rejection_report(outcome)) if isinstance(outcome, Rejection) else "no"
            raise SystemExit(f"{PAGE.name}:{line}: rejected? {told}")
        shown = "\n".join(_shown(outcome, how))
        return (
            f"```ts{found['how']}\n{code}```\n"
            f"<!-- drawn by make docs -->\n{shown}\n<!-- /drawn -->\n"
        )

    return PROGRAM.sub(below, text)


def _shown(outcome: Analysis | Rejection, how: str) -> Iterator[str]:
    if isinstance(outcome, Rejection):
        yield _fenced("text", printed(*rejection_report(outcome)))
    elif how == "decision":
        yield _fenced("text", printed(*analysis_report(outcome, "program")))
    elif how == "json":
        report = to_json(outcome)
        yield _fenced("json", json.dumps(report, indent=2, ensure_ascii=False))
    elif how == "instrumented":
        lines = outcome.instrumented.splitlines()
        yield _fenced("ts", "\n".join(line.rstrip() for line in lines))
    else:
        dynamic = outcome.dynamic_calls
        yield _fenced("mermaid", mermaid(outcome.structure, dynamic=dynamic).rstrip("\n"))
        tree = printed(structure_tree(outcome.structure, "program", dynamic=dynamic))
        yield _fenced("text", "\n".join([tree, *_edges(outcome.structure)]))


def _edges(structure: StaticStructure) -> Iterator[str]:
    flow = [_way(edge) for edge in structure.edges if edge.type != "provides"]
    data = [_way(edge) for edge in structure.edges if edge.type == "provides"]
    for head, ways in (("edges", flow), ("data", data)):
        if ways:
            yield from _wrapped(head, ways)


def _wrapped(head: str, words: Sequence[str]) -> Iterator[str]:
    line = head
    for word in words:
        if len(line) + len(word) > WIDTH:
            yield line
            line = " " * len(head)
        line += f"  {word}"
    yield line


def _way(edge: Edge) -> str:
    match edge.type:
        case "conditional":
            return f"{edge.from_} ─{edge.outcome}→ {edge.to}"
        case "loop_body":
            return f"{edge.from_} ⇒ {edge.to}"
        case "provides":
            said = filter(None, [edge.coverage, mapping_text(edge.field_mapping)])
            return f"{edge.from_} ⇢ {edge.to} ({': '.join(said)})"
        case _:
            return f"{edge.from_} → {edge.to}"


def printed(*parts: RenderableType) -> str:
    """Render as on a terminal without colours."""
    console = Console(file=io.StringIO(), width=WIDTH, no_color=True, highlight=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def main(action: str) -> int:
    """Run `write` or `check`; the exit code is 1 when the page is out of date."""
    text = PAGE.read_text(encoding="utf-8")
    today = drawn(text)
    if action == "write":
        PAGE.write_text(today, encoding="utf-8")
        return 0
    for number, (old, new) in enumerate(zip(text.splitlines(), today.splitlines(), strict=False)):
        if old != new:
            print(f"{PAGE}:{number + 1}: expected {new!r} - run `make docs`", file=sys.stderr)
            return 1
    if text != today:
        print(f"{PAGE}: out of date - run `make docs`", file=sys.stderr)
    return int(text != today)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "check"))
