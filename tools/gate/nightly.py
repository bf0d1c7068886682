"""Run the campaigns, and record each with the tree that it passed on: `make nightly`.

A part that passed on the present tree is not run again, so that a run that was stopped continues.
The record is docs/proof/nightly.md, logs are in `.cache/nightly`. The hash of a tree leaves out
docs/proof, which reports are written to.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tools.gate.campaigns import PARTS, Part

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/proof/nightly.md"
LOGS = ROOT / ".cache/nightly"
PROOF = "docs/proof/"
_OF_MAKE = frozenset({"ARGS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"})
HEAD = """\
# Campaigns
Written by `make nightly`: the last result of each part, with the hash of the tree that it ran on
(`python -m tools.gate.nightly --tree` prints the present one; docs/proof is left out of it).

| part | result | tree | day | seconds | load |
| --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Result:
    """The last run of a part; load: of the machine over its last minute."""

    part: str
    result: str
    tree: str
    day: str
    seconds: int
    load: float

    @property
    def row(self) -> str:
        """Its line of the record."""
        return (
            f"| {self.part} | {self.result} | {self.tree} | {self.day} | {self.seconds} "
            f"| {self.load:.1f} |\n"
        )


def parsed(page: str) -> dict[str, Result]:
    """Read the record, by part."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.removeprefix(HEAD).splitlines()
    ]
    return {
        part: Result(part, result, tree, day, int(seconds), float(load))
        for part, result, tree, day, seconds, load in rows
    }


def rendered(results: dict[str, Result]) -> str:
    """Write the record, in the order of the parts."""
    return HEAD + "".join(results[part.name].row for part in PARTS if part.name in results)


def open_parts(
    results: dict[str, Result], tree: str, only: Sequence[str] = (), *, again: bool = False
) -> list[Part]:
    """Return the chosen parts that did not pass on this tree; with `again` those that did, too."""

    def passed(part: Part) -> bool:
        last = results.get(part.name)
        return last is not None and (last.result, last.tree) == ("passed", tree)

    chosen = [part for part in PARTS if not only or part.name in only]
    return [part for part in chosen if again or not passed(part)]


def tree_hash(listing: str) -> str:
    """Return a short hash of `git ls-tree -r` without the files of docs/proof."""
    lines = [line for line in listing.splitlines() if not line.split("\t")[1].startswith(PROOF)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def present_tree() -> str:
    """Return the hash of the committed tree; it ends in `+` where files differ from it."""
    tree = tree_hash(_git("ls-tree", "-r", "HEAD"))
    differing = _git("status", "--porcelain", "--", ".", f":!{PROOF}")
    return f"{tree}+" if differing else tree


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


def run(part: Part, tree: str) -> Result:
    """Run one part; its output goes to its log."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{part.name}.log"
    # Else the ARGS of `make nightly` are those of every make below it.
    own = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
    began = time.monotonic()
    with log.open("wb") as out:
        status = subprocess.run(
            part.command, cwd=ROOT, env=own, stdout=out, stderr=out, check=False
        )
    result = "passed" if status.returncode == 0 else "failed"
    day = datetime.now(UTC).date().isoformat()
    seconds = round(time.monotonic() - began)
    return Result(part.name, result, tree, day, seconds, os.getloadavg()[0])


def main() -> int:
    """Run what is open and record it; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [part.name for part in PARTS]
    parser.add_argument("--only", action="append", choices=names, default=[], help="a part")
    parser.add_argument("--again", action="store_true", help="parts that passed on this tree, too")
    parser.add_argument("--list", action="store_true", help="print what would run")
    parser.add_argument("--tree", action="store_true", help="print the present tree's hash")
    given = parser.parse_args()
    tree = present_tree()
    results = parsed(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}
    todo = open_parts(results, tree, given.only, again=given.again)
    if given.tree or given.list:
        print(tree if given.tree else "\n".join(part.name for part in todo))
        return 0
    failed: list[str] = []
    for number, part in enumerate(todo, 1):
        print(f"[{number}/{len(todo)}] {part.name}: {part.tests}", flush=True)
        results[part.name] = found = run(part, tree)
        PAGE.write_text(rendered(results), encoding="utf-8")
        print(f"  {found.result} after {found.seconds} s", flush=True)
        if found.result != "passed":
            failed.append(part.name)
            print(f"  see {LOGS.relative_to(ROOT)}/{part.name}.log", flush=True)
    print(f"{len(todo) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
