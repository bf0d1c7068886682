"""Completeness of tool calls found in real TypeScript: files made into programs, analysed and
checked.

`uv run python bench/corpus.py FOLDER...` reads every .ts file under the folders; by default those
of this project's own sandbox. Prints missed calls (there should be none), reasons of rejections,
and CPU seconds per file.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Final

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

from pml_analysis.analysis import Analysis, Rejection, analyze
from pml_analysis.syntax.source import Source
from pml_analysis.text.limits import Limits
from pml_common.contracts.decision import Policy
from services.analyzer.tests.support.invariants import faults
from services.analyzer.tests.support.rewriting import rewritten
from services.analyzer.tests.support.tool_calls import (
    CATALOGUE,
    KNOWN,
    parses,
    places_of_calls,
    places_of_nodes,
)

LIMITS: Final = Limits(nodes=10_000, edges=100_000)
"""Wider than a person would approve: a whole file is one program here."""

OWN: Final = "services/executor/src/pml_executor/runtime"
LONGEST_S: Final = 1.0
_NAME = re.compile(r'"[^"]*"|[\w$]+(?= is | cannot | =)')


@dataclass
class Findings:
    """Results, file by file; times in CPU seconds."""

    analysed: int = 0
    calls: int = 0
    dynamic: int = 0
    missed: list[str] = field(default_factory=list[str])
    made_up: list[str] = field(default_factory=list[str])
    crashed: list[str] = field(default_factory=list[str])
    faulty: list[str] = field(default_factory=list[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    example: dict[str, str] = field(default_factory=dict[str, str])
    times: list[tuple[float, int, str]] = field(default_factory=list[tuple[float, int, str]])

    def refuse(self, reason: str, where: str) -> None:
        """Count a rejected file."""
        self.refused[reason] += 1
        self.example.setdefault(reason, where)


def files(folders: Iterable[str]) -> Iterator[Path]:
    """Every .ts file without declaration files."""
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.ts")):
            if not path.name.endswith(".d.ts") and path.is_file():
                yield path


def examine(path: Path, findings: Findings) -> None:
    """Turn a file into a program, analyse it, and compare."""
    text = path.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff")
    code = rewritten(text)
    if not parses(text) and not parses(code):
        findings.refuse("The grammar does not know something in the file itself.", str(path))
        return
    began = process_time()
    try:
        outcome = analyze(code, tools=CATALOGUE, policy=Policy(), limits=LIMITS, capabilities=KNOWN)
    except Exception as error:  # noqa: BLE001 - any exception is a finding
        findings.crashed.append(f"{path}: {error!r}")
        return
    findings.times.append((process_time() - began, len(code), str(path)))
    findings.faulty += [f"{path}: {fault[:200]}" for fault in faults(code, outcome)]
    if isinstance(outcome, Rejection):
        told = outcome.diagnostics[0]
        where = f"{path} (as a program, line {told.line}: {(told.source_line or '').strip()[:80]})"
        findings.refuse(_NAME.sub("X", told.message), where)
    else:
        compare(path, code, outcome, findings)


def compare(path: Path, code: str, outcome: Analysis, findings: Findings) -> None:
    """Check that every call on a root is a node or dynamic, and every node is such a call."""
    lines = Source(code)
    expected = places_of_calls(code)
    nodes, dynamic = places_of_nodes(outcome)
    findings.analysed += 1
    findings.calls += len(expected)
    findings.dynamic += len(expected & dynamic)
    for at in sorted(expected - nodes - dynamic):
        findings.missed.append(f"{path} {at}: {lines.line(at[0])[at[1] - 1 :][:80]}")
    for at in sorted(nodes - expected):
        findings.made_up.append(f"{path} {at}: {lines.line(at[0])[at[1] - 1 :][:80]}")


def report(findings: Findings, found: int) -> bool:
    """Print everything; returns whether nothing was missed."""
    print(f"{found} files, {findings.analysed} analysed ({findings.analysed / found:.1%})")
    print(f"{findings.calls} calls on roots, {findings.dynamic} of them dynamic")
    for reason, count in findings.refused.most_common():
        print(f"  refused {count:>4}  {reason}\n                e.g. {findings.example[reason]}")
    times = sorted(findings.times, reverse=True)
    total, length = sum(time for time, _, _ in times), sum(length for _, length, _ in times)
    print(
        f"CPU seconds: max {times[0][0]:.3f}, p99 {times[len(times) // 100][0]:.3f}, "
        f"p50 {times[len(times) // 2][0]:.4f}, all {total:.1f} ({total / length * 1e6:.2f} µs "
        "per character); the slowest:"
    )
    for time, length, path in times[:5]:
        print(f"  {time:.3f} {length:>7} characters {path}")
    slow = [path for time, _, path in times if time > LONGEST_S]
    wrong = {
        "missed": findings.missed,
        "made up": findings.made_up,
        "crashed": findings.crashed,
        "faulty": findings.faulty,
        "too slow": slow,
    }
    for name, places in wrong.items():
        print(f"{name}: {len(places)}", *places[:10], sep="\n  ")
    return not any(wrong.values())


def main(folders: list[str]) -> int:
    """Return exit code 0 when nothing is wrong."""
    findings = Findings()
    paths = list(files(folders or [OWN]))
    for path in paths:
        examine(path, findings)
    return 0 if report(findings, len(paths)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
