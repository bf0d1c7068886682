"""Tests that take too long for the gate: the parts of `make nightly`, and the changes that need one
before they land.

`python -m tools.gate.campaigns write` puts both tables into CONTRIBUTING.md, `check` fails where
they are out of date.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
BEGIN = "<!-- campaigns: written by `make docs` -->\n"
END = "<!-- end of campaigns -->\n"


@dataclass(frozen=True)
class Part:
    """A make target that `make nightly` runs, and the promise that it tests."""

    name: str
    tests: str
    target: str = ""
    arguments: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """The command line."""
        arguments = (f"ARGS={self.arguments}",) if self.arguments else ()
        return ("make", self.target or self.name, *arguments)


@dataclass(frozen=True)
class Rule:
    """Parts that a change of some files needs before it lands; `*` matches any part of a path."""

    subject: str
    files: tuple[str, ...]
    parts: tuple[str, ...]


HOSTILE = "services/executor"
STACK = "tests/e2e services/gateway --ignore tests/e2e/test_conformance.py"
OTHERS = (
    "tests services/analyzer services/learner services/registry libs "
    "--ignore tests/e2e --ignore tests/faults"
)

PARTS = (
    Part("hostile", "every hostile program at every site, both kinds of sandbox", "cases", HOSTILE),
    Part("whole-stack", "older generations of MCP, every operation of REST", "cases", STACK),
    Part("single-faults", "a fault each: disk, clock, cluster, handover", "cases", "tests/faults"),
    Part("others", "all other cases marked `nightly`", "cases", OTHERS),
    Part("properties", "1,000 examples of each property, long generated programs"),
    Part("crash", "kills and suspensions of executors at every point of their runs"),
    Part("crash-learner", "kills of 100 learners under load"),
    Part("faults", "10 minutes of faults in every part under load", arguments="--minutes 10"),
    Part("bound", "20,000 generated programs against what was shown"),
    Part("bound-attacks", "400 programs against approvals, with every lie of the analysis"),
    Part("races", "50 writers of the same records for a minute"),
    Part("upgrade-test", "services of the last tag and of today in every mix"),
    Part("conformance", "the official conformance suite of MCP, both revisions"),
    Part("clients", "real MCP clients"),
    Part("servers", "26 real MCP servers behind one stack"),
    Part("packages", "wheels and a release, built and installed"),
    Part("images", "images of all services and stand-ins", "container-images"),
    Part("containers", "the stack in containers: main job, kills, traces"),
)
"""Each part after those that make what it needs."""

RULES = (
    Rule(
        "sandbox, its walls and its runtime",
        (
            "services/executor/src/*/runtime/*",
            "services/executor/src/*/adapters/*",
            "services/executor/src/*/domain/*",
        ),
        ("hostile", "bound"),
    ),
    Rule(
        "runs, calls, journal and bus",
        (
            "services/executor/src/*/application/*",
            "services/gateway/src/*/application/*",
            "services/gateway/src/*/adapters/postgres/*",
            "libs/pml_common/src/pml_common/bus/*",
        ),
        ("crash", "faults", "single-faults"),
    ),
    Rule(
        "REST",
        ("services/gateway/src/*/entrypoints/http/*", "services/gateway/src/*/domain/api/*"),
        ("whole-stack",),
    ),
    Rule(
        "analysis, decision and what an approval binds",
        (
            "libs/pml_analysis/src/*",
            "libs/pml_common/src/pml_common/binding/*",
            "services/gateway/src/*/domain/*call*",
            "services/gateway/src/*/domain/*grant*",
        ),
        ("bound", "bound-attacks", "properties"),
    ),
    Rule(
        "messages and migrations",
        ("libs/pml_common/src/pml_common/contracts/*", "*/sql/migrations/*"),
        ("upgrade-test",),
    ),
    Rule(
        "MCP, as a server and as a client",
        (
            "services/gateway/src/*/entrypoints/mcp/*",
            "services/gateway/src/*/adapters/mcp_client/*",
        ),
        ("conformance", "clients", "servers", "whole-stack"),
    ),
    Rule("learning", ("services/learner/src/*",), ("crash-learner",)),
    Rule(
        "records and names",
        ("services/registry/src/*record*", "services/registry/src/*name*"),
        ("races",),
    ),
    Rule(
        "embedded stack",
        ("libs/pml_local/src/*", "libs/pml_common/src/pml_common/service.py"),
        ("crash", "faults", "single-faults"),
    ),
    Rule(
        "packages and releases",
        ("*pyproject.toml", "uv.lock", "tools/release/*"),
        ("packages",),
    ),
    Rule(
        "deployment",
        ("deploy/*", "tools/images/*", "tools/compose/*", ".ci/*"),
        ("images", "containers"),
    ),
)


def needed(changed: list[str]) -> dict[str, list[str]]:
    """Map each part that changed files need, in the parts' order, to the subjects that need it."""
    subjects: dict[str, list[str]] = {part.name: [] for part in PARTS}
    for rule in RULES:
        if any(fnmatchcase(file, pattern) for file in changed for pattern in rule.files):
            for part in rule.parts:
                subjects[part].append(rule.subject)
    return {part: found for part, found in subjects.items() if found}


def tables() -> str:
    """Both tables of CONTRIBUTING.md."""
    return "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    yield "| changed | run before landing |"
    yield "| --- | --- |"
    for rule in RULES:
        files = ", ".join(f"`{file}`" for file in rule.files)
        yield f"| {rule.subject} ({files}) | {', '.join(f'`{part}`' for part in rule.parts)} |"
    yield ""
    yield "| part of `make nightly` | command | tests |"
    yield "| --- | --- | --- |"
    for part in PARTS:
        target, *arguments = part.command[1:]
        shown = " ".join(
            ["make", target, *(f'{each.replace("=", "=" + chr(34), 1)}"' for each in arguments)]
        )
        yield f"| `{part.name}` | `{shown}` | {part.tests} |"


def main(verb: str) -> int:
    """Write the tables, or check them; returns the exit status."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = f"{before}{BEGIN}{tables()}{END}{after}"
    if verb == "write":
        PAGE.write_text(wanted, encoding="utf-8")
    elif page != wanted:
        print(f"{PAGE.name} does not state the campaigns as they are: run make docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
