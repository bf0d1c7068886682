"""The table of patterns: programs, and all facts known of them before and after a run.

`patterns/<group>.txt` holds cases: a line with `# ` and the topic of the case, the code, and lines
with `=> ` and one fact each. `python -m services.analyzer.tests.patterns` writes the current facts;
read them before they are committed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pml_analysis.analysis import Analysis, analyze
from pml_common.contracts.decision import Policy
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    CapabilityNode,
    LiteralArgument,
    ObjectArgument,
    ParameterArgument,
    TaskNode,
)
from services.analyzer.tests.support.programs import TOOLS, flow, nodes, provided
from services.analyzer.tests.support.recorder import Outcome, run

FOLDER: Final = Path(__file__).with_name("patterns")


@dataclass(frozen=True)
class Pattern:
    """One case; `facts` by name: nodes, edges, data, given, dynamic, path. One that is `apart` has
    parts that run side by side without a fork, so that no single path leads through them."""

    group: str
    shows: str
    code: str
    facts: Mapping[str, str]

    @property
    def id(self) -> str:
        """Return `loops: for-of`."""
        return f"{self.group}: {self.shows}"


def patterns() -> list[Pattern]:
    """Return the whole table."""
    return [found for file in sorted(FOLDER.glob("*.txt")) for found in _read(file)]


def understood(code: str) -> Analysis:
    """Return the analysis of a case."""
    found = analyze(code, tools=TOOLS, policy=Policy())
    assert isinstance(found, Analysis), found
    return found


def known(analysis: Analysis) -> dict[str, str]:
    """Return the facts that need no run."""
    facts = {
        "nodes": nodes(analysis),
        "edges": flow(analysis),
        "data": provided(analysis),
        "given": "; ".join(_given(analysis)),
        "dynamic": ", ".join(call.expression for call in analysis.dynamic_calls),
    }
    return {name: text for name, text in facts.items() if text}


def ran(outcome: Outcome) -> dict[str, str]:
    """Return the fact that a run of the instrumented program shows: the reported nodes, in
    order."""
    assert not isinstance(outcome, str), outcome
    steps = (f"{node}:{way}" if way else node for node, way in outcome["path"])
    path = " ".join(steps)
    return {"path": path} if path else {}


def _given(analysis: Analysis) -> list[str]:
    return [
        f"{node.id} {', '.join(f'{key}={_shown(value)}' for key, value in node.arguments.items())}"
        for node in analysis.structure.nodes
        if isinstance(node, TaskNode | CapabilityNode) and node.arguments
    ]


def _shown(argument: Argument) -> str:
    match argument:
        case LiteralArgument():
            return argument.model_dump_json(include={"value"}).removeprefix('{"value":')[:-1]
        case ParameterArgument():
            return f"<{argument.parameter_name}>"
        case ObjectArgument():
            fields = (f"{key}: {_shown(value)}" for key, value in argument.fields.items())
            return f"{{{', '.join(fields)}}}"
        case ArrayArgument():
            return f"[{', '.join(map(_shown, argument.items))}]"
        case _:
            return f"{argument.expression}{f' @{argument.node_id}' if argument.node_id else ''}"


def _read(file: Path) -> list[Pattern]:
    found: list[Pattern] = []
    for block in file.read_text().split("\n# ")[1:]:
        shows, *lines = block.strip().splitlines()
        facts = [line.removeprefix("=> ") for line in lines if line.startswith("=> ")]
        code = [line for line in lines if not line.startswith("=> ")]
        named = dict(fact.split(" ", 1) for fact in facts)
        found.append(Pattern(file.stem, shows, "\n".join(code), named))
    return found


def write() -> None:
    """Write every case with its current facts."""
    every = patterns()
    analyses = [understood(case.code) for case in every]
    runs = run([analysis.instrumented for analysis in analyses])
    texts: dict[str, str] = {}
    for case, analysis, outcome in zip(every, analyses, runs, strict=True):
        kept = {name: text for name, text in case.facts.items() if name == "apart"}
        facts = {**known(analysis), **ran(outcome), **kept}
        told = "".join(f"=> {name} {text}\n" for name, text in facts.items())
        texts[case.group] = f"{texts.get(case.group, '')}\n# {case.shows}\n{case.code}\n{told}"
    for group, text in texts.items():
        (FOLDER / f"{group}.txt").write_text(text)


if __name__ == "__main__":
    write()
