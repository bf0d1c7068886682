"""CPU time of one workflow: with a read-only stub, and with the same tool on `ask`, its arguments
bound and approved by a person.

`--against CHECKOUT` compares with another checkout of this project, set up by `make setup`: nine
runs, in each of which both serve short blocks of workflows in alternation, so that the machine's
load affects both alike; fails if the 95 % interval of the difference lies wholly above 5 %.
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
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Final, cast

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

from execution.callers import Http, asked, execute
from execution.floors import CODE
from execution.processor import per_workflow, snapshot
from execution.throughput import two_cores

WORKFLOWS, WARM_UP = 80, 40
BLOCK, BLOCKS = 10, 20
"""Workflows of one kind that a checkout serves in one turn, and the turns of each in a run."""
MOST_MORE: Final = 0.05
_T_95: Final = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""Student's t, two-sided 95 %, by degrees of freedom."""

KINDS: Final = ("read-only", "approved")
ASKED: Final = {"rules": [{"pattern": "pml_stub:*", "verdict": "ask"}]}

Measure = Callable[[int], Awaitable[dict[str, float]]]
"""Serves this many workflows; returns the CPU milliseconds of one, by part and in total."""


async def approved(http: Http) -> None:
    """Run one workflow that a person approves."""
    answer = (await http.post("/api/execute", json={"code": CODE, "fresh": True})).json()
    assert answer["status"] == "approval_required", answer
    decision = {"decision": "approve", "wait": True}
    url = f"/api/workflows/{answer['workflow_id']}/approval"
    ended = (await http.post(url, json=decision)).json()
    assert ended["status"] == "success", ended


def _written(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()


@asynccontextmanager
async def warm_stack(folder: Path, kind: str) -> AsyncGenerator[Measure]:
    """Run a stack that has served some workflows of a kind."""
    policy = _written(folder / "policy.json", json.dumps(ASKED))
    env = {} if kind == "read-only" else {"PML_GATEWAY_POLICY_FILE": str(policy)}
    async with asked(folder / "home", env) as (stack, http):
        key: Path | None = getattr(stack, "approver_key", None)  # other checkouts may have none
        if key is not None:
            http.headers["Authorization"] = f"Bearer {_text(key)}"

        async def measure(workflows: int) -> dict[str, float]:
            before = snapshot(stack)
            for _ in range(workflows):
                await (execute(http, CODE) if kind == "read-only" else approved(http))
            return per_workflow(before, snapshot(stack), workflows)

        await measure(WARM_UP)
        yield measure


async def serve_blocks(folder: Path, kind: str) -> None:
    """Serve a block for each line of standard input; print its CPU milliseconds per workflow."""
    async with warm_stack(folder, kind) as measure:
        print("ready", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await measure(BLOCK)), flush=True)


class ServingCheckout:
    """A checkout that serves blocks of one kind in a separate process."""

    def __init__(self, checkout: Path, kind: str) -> None:
        script = checkout / "bench/workflow_cpu.py"  # its own: names of packages differ
        argv = [checkout / ".venv/bin/python", script, "--blocks", kind]
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._into = cast("IO[str]", self._process.stdin)
        self._out = cast("IO[str]", self._process.stdout)

    def await_ready(self) -> None:
        """Wait until it serves."""
        assert self._out.readline() == "ready\n", "the other side did not start"

    def block(self) -> dict[str, float]:
        """CPU milliseconds per workflow of the next block, by part."""
        self._into.write("\n")
        return json.loads(self._out.readline())

    def end(self) -> None:
        """End it, and wait for its exit."""
        self._into.close()
        self._process.wait(60)


def one_run(other: Path, kind: str) -> tuple[dict[str, float], dict[str, float]]:
    """CPU milliseconds per workflow by part, of the other checkout and of this one, serving in
    alternation."""
    this = Path(__file__).resolve().parents[1]
    sides = [ServingCheckout(other, kind), ServingCheckout(this, kind)]
    took: list[list[dict[str, float]]] = [[], []]
    try:
        for side in sides:
            side.await_ready()
        for number in range(BLOCKS):
            for side in (0, 1) if number % 2 == 0 else (1, 0):
                took[side].append(sides[side].block())
    finally:
        for side in sides:
            side.end()
    return _mean(took[0]), _mean(took[1])


def _mean(blocks: Sequence[dict[str, float]]) -> dict[str, float]:
    return {part: statistics.fmean(block[part] for block in blocks) for part in blocks[0]}


def interval(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Mean of the relative differences and its 95 % interval."""
    more = [new / old - 1 for old, new in pairs]
    mean = statistics.fmean(more)
    if len(more) < 3:
        return mean, -math.inf, math.inf
    half = _T_95.get(len(more) - 1, 1.96) * statistics.stdev(more) / math.sqrt(len(more))
    return mean, mean - half, mean + half


def compare(other: Path, rounds: int) -> int:
    """Print the comparison; returns 1 if a cost exceeds its limit."""
    failed = False
    for kind in KINDS:
        pairs: list[tuple[float, float]] = []
        more: list[dict[str, float]] = []
        for number in range(rounds):
            old, new = one_run(other, kind)
            pairs.append((old["all"], new["all"]))
            more.append({part: new[part] - old.get(part, 0) for part in new})
            said = f"{kind}, run {number + 1}: {old['all']:.1f} -> {new['all']:.1f} ms"
            print(said, file=sys.stderr, flush=True)
        mean, low, high = interval(pairs)
        was, now = (statistics.median(column) for column in zip(*pairs, strict=True))
        failed |= low > MOST_MORE
        where = ", ".join(f"{part} {ms:+.2f}" for part, ms in _mean(more).items() if part != "all")
        print(
            f"{kind:<10} {was:6.1f} ms -> {now:6.1f} ms of CPU (medians of {len(pairs)}), "
            f"{mean:+.1%} [{low:+.1%}, {high:+.1%}]; ms by part: {where}",
            flush=True,
        )
    return int(failed)


async def _each_kind(folder: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    for kind in KINDS:
        async with warm_stack(folder / kind, kind) as measure:
            found[kind] = (await measure(WORKFLOWS))["all"]
    return found


def main() -> int:
    """Measure, or compare."""
    parser = argparse.ArgumentParser(description="Processor time of one workflow.")
    parser.add_argument("--against", type=Path, help="another checkout, set up")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--blocks", choices=KINDS, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.against is not None:
        return compare(wanted.against.resolve(), wanted.rounds)
    with (
        tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as name,
        two_cores(),
    ):
        if wanted.blocks is not None:
            asyncio.run(serve_blocks(Path(name) / wanted.blocks, wanted.blocks))
            return 0
        found = asyncio.run(_each_kind(Path(name)))
    print(json.dumps(found) if wanted.json else found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
