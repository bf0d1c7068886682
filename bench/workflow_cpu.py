"""Processor time of one workflow: with a read-only stub, and with the same tool asked about, its
arguments bound and a person's approval.

`--against CHECKOUT` compares with another checkout of this project, set up by `make setup`: both in
alternation, nine rounds, and fails where the 95 % interval of the difference lies wholly above 5 %.
`uv run python bench/workflow_cpu.py [--against CHECKOUT] [--rounds N] [--json]`
"""

import argparse
import asyncio
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from execution.callers import Http, asked, execute
from execution.floors import CODE
from execution.processor import per_workflow, snapshot
from execution.throughput import two_cores

WORKFLOWS, WARM_UP = 80, 20
MOST_MORE: Final = 0.05
_T_95: Final = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""Student's t, two-sided 95 %, by degrees of freedom."""

ASKED: Final = {"rules": [{"pattern": "pml_stub:*", "verdict": "ask"}]}


async def approved(http: Http) -> None:
    """One workflow that a person lets run."""
    answer = (await http.post("/api/execute", json={"code": CODE})).json()
    assert answer["status"] == "approval_required", answer
    decision = {"decision": "approve", "wait": True}
    url = f"/api/workflows/{answer['workflowId']}/approval"
    ended = (await http.post(url, json=decision)).json()
    assert ended["status"] == "success", ended


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()


async def measured(folder: Path) -> dict[str, float]:
    """CPU milliseconds of one workflow of each kind."""
    found: dict[str, float] = {}
    policy = folder / "policy.json"
    policy.write_text(json.dumps(ASKED), encoding="utf-8")
    kinds = {"read-only": {}, "approved": {"PML_GATEWAY_POLICY_FILE": str(policy)}}
    for kind, env in kinds.items():
        async with asked(folder / kind, env) as (stack, http):
            key: Path | None = getattr(stack, "approver_key", None)  # other checkouts may have none
            if key is not None:
                http.headers["Authorization"] = f"Bearer {_text(key)}"

            async def one(http: Http = http, kind: str = kind) -> None:
                await (execute(http, CODE) if kind == "read-only" else approved(http))

            for _ in range(WARM_UP):
                await one()
            before = snapshot(stack)
            for _ in range(WORKFLOWS):
                await one()
            found[kind] = per_workflow(before, snapshot(stack), WORKFLOWS)["all"]
    return found


def alternating(other: Path, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Pairs (other, this) of CPU milliseconds, kind by kind."""
    script = Path(__file__).resolve()
    this = script.parents[1]
    pairs: dict[str, list[tuple[float, float]]] = {}
    for number in range(rounds):
        order = [other, this] if number % 2 == 0 else [this, other]
        told = {checkout: _in(checkout, script) for checkout in order}
        for kind, ms in told[other].items():
            pairs.setdefault(kind, []).append((ms, told[this][kind]))
        print(f"round {number + 1}: {told[other]} -> {told[this]}", file=sys.stderr)
    return pairs


def _in(checkout: Path, script: Path) -> dict[str, float]:
    """Run this file with the packages of a checkout and return its figures."""
    python = checkout / ".venv/bin/python"
    done = subprocess.run(
        [python, script, "--json"], check=True, capture_output=True, text=True, timeout=600
    )
    return json.loads(done.stdout.splitlines()[-1])


def interval(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Mean of the relative differences and its 95 % interval."""
    more = [new / old - 1 for old, new in pairs]
    mean = statistics.fmean(more)
    if len(more) < 3:
        return mean, -math.inf, math.inf
    half = _T_95.get(len(more) - 1, 1.96) * statistics.stdev(more) / math.sqrt(len(more))
    return mean, mean - half, mean + half


def compare(other: Path, rounds: int) -> int:
    """Print the comparison; 1 where something costs more than it may."""
    failed = False
    for kind, pairs in alternating(other, rounds).items():
        mean, low, high = interval(pairs)
        old, new = (statistics.median(column) for column in zip(*pairs, strict=True))
        failed |= low > MOST_MORE
        print(
            f"{kind:<10} {old:6.1f} ms -> {new:6.1f} ms of CPU (medians of {len(pairs)}), "
            f"{mean:+.1%} [{low:+.1%}, {high:+.1%}]"
        )
    return int(failed)


def main() -> int:
    """Measure, or compare."""
    parser = argparse.ArgumentParser(description="Processor time of one workflow.")
    parser.add_argument("--against", type=Path, help="another checkout, set up")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    if wanted.against is not None:
        return compare(wanted.against.resolve(), wanted.rounds)
    with (
        tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as name,
        two_cores(),
    ):
        found = asyncio.run(measured(Path(name)))
    print(json.dumps(found) if wanted.json else found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
