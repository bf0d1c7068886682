"""Quality of discovery after use: LiveMCPBench's tasks are used in four folds of five, discovery is
measured on the fifth, beside the zero-shot ranking; the same with useless and hostile uses.

Simulated use: five principals; each task of the training folds is run by three of them, in a random
order, ten runs an hour. A run succeeds, and calls one tool of each annotated name, drawn where
several servers have that name. Nothing of a tested fold's tasks is used. `random`: runs call as
many tools, any. `swapped`: every run calls the tools of another task, always the same one.
`one swaps`: one principal of the five does so, for every task; `one pushes`: it calls the same
three tools, which serve no task, for every task. `forced` ignores the guard; `guarded` is what
callers get. In brackets the 95 % bootstrap interval over tasks; `gain` is that of the difference to
zero-shot, task by task. The registry's own handlers learn and rank, over its stores in an embedded
Postgres.
`uv run python bench/learned.py [--livemcpbench F] [--draws 3] [--users 1] [--uses honest …]`
"""

import argparse
import asyncio
import random
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import UUID, uuid5

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

import numpy as np
from discovery.database import registry_pools, running_databases
from discovery.datasets import Dataset, DatasetError, Task, read_livemcpbench
from discovery.metrics import quality
from discovery.rankings import DEPTH, SCOPE, indexed
from discovery.remembered import RememberedCandidates, RememberedEmbedder, RememberedIndex
from typing_extensions import override

from pml_common.contracts.registry import Discover
from pml_common.contracts.scope import Scope
from pml_common.contracts.uses import ObservedUse, UsesObserved
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.background_embedder import BackgroundEmbedder
from pml_registry.adapters.minilm import MiniLmEmbedder
from pml_registry.adapters.postgres_evidence import PostgresEvidenceStore
from pml_registry.application.evidence import Evidence, Held
from pml_registry.application.learning_uses import UseLearning
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.entrypoints.bus.on_uses_observed import on_uses_observed

LIVEMCPBENCH = Path(__file__).parents[2] / "shared/data/livemcpbench"
FOLDS, PRINCIPALS, USERS, AN_HOUR = 5, 5, 3, 10
METRICS = ("R@5", "nDCG@5")
KINDS = ("honest", "random", "swapped", "one swaps", "one pushes")
_HOUR_MS = 3_600_000.0
_START_MS = 1_795_253_400_000.0
_SAMPLES = 2_000
_SPACE = UUID("0a7d8c0e-54c5-4c0c-8a53-64a6f6a1f9d2")


class Served(Protocol):
    """Chooses the tools that a run of a task by a principal calls."""

    __name__: str

    def __call__(self, task: int, who: int, draw: random.Random, /) -> Sequence[str]:
        """Return their ids."""
        ...


class Forced(Evidence):
    """Evidence that is used whatever the guard says."""

    @override
    async def used(self, scope: Scope) -> Held | None:
        return await self.held(scope)


@dataclass(frozen=True)
class Parts:
    """The parts that rank."""

    embedder: RememberedEmbedder
    index: RememberedIndex
    candidates: RememberedCandidates

    async def ranked(self, intent: str, evidence: Evidence | None) -> Sequence[str]:
        """Tool ids, best first."""
        asked = Discover(scope=SCOPE, intent=intent, type="tool", limit=DEPTH)
        page = await on_discover(asked, self.embedder, self.index, self.candidates, evidence)
        return [str(hit.id) for hit in page.hits]


def served_by(tasks: Sequence[Task], tools: Sequence[str]) -> Mapping[str, Served]:
    """The kinds of use."""
    others = random.Random(7).sample(range(len(tasks)), len(tasks))  # noqa: S311 - a fixed draw

    def honest(task: int, who: int, draw: random.Random) -> Sequence[str]:
        of_names: dict[str, list[str]] = {}
        for tool in sorted(tasks[task].relevant):
            of_names.setdefault(tool.partition(":")[2], []).append(tool)
        return [draw.choice(same) for same in of_names.values()]

    def useless(task: int, who: int, draw: random.Random) -> Sequence[str]:
        return draw.sample(tools, len(honest(task, who, draw)))

    def swapped(task: int, who: int, draw: random.Random) -> Sequence[str]:
        return honest(others[task], who, draw)

    relevant = {tool for task in tasks for tool in task.relevant}
    foreign = random.Random(7).sample([tool for tool in tools if tool not in relevant], 3)  # noqa: S311

    def one_swaps(task: int, who: int, draw: random.Random) -> Sequence[str]:
        return (swapped if who == 0 else honest)(task, who, draw)

    def one_pushes(task: int, who: int, draw: random.Random) -> Sequence[str]:
        return foreign if who == 0 else honest(task, who, draw)

    return {
        "honest": honest,
        "random": useless,
        "swapped": swapped,
        "one swaps": one_swaps,
        "one pushes": one_pushes,
    }


def uses(
    trained: Sequence[int], tasks: Sequence[Task], served: Served, draw: random.Random, users: int
) -> Sequence[UsesObserved]:
    """The messages of a simulation; where one principal is hostile, it runs every task."""
    runs = [(task, who) for task in trained for who in draw.sample(range(PRINCIPALS), users)]
    if served.__name__.startswith("one_"):
        runs = [*(run for run in runs if run[1]), *((task, 0) for task in trained)]
    draw.shuffle(runs)
    messages: list[UsesObserved] = []
    for place, (task, who) in enumerate(runs):
        workflow = uuid5(_SPACE, f"{place} {draw.random()}")
        use = ObservedUse(
            workflow_id=workflow,
            principal=f"agent-{who}",
            intent=tasks[task].query,
            tools=tuple(served(task, who, draw)),
            observed_at=_START_MS + place // AN_HOUR * _HOUR_MS,
        )
        messages.append(
            UsesObserved(scope=SCOPE, event_id=workflow, workflow_id=workflow, uses=(use,))
        )
    return messages


async def fold(
    pools: ScopedPools,
    parts: Parts,
    tasks: Sequence[Task],
    tested: Sequence[int],
    messages: Sequence[UsesObserved],
) -> tuple[Mapping[int, Mapping[str, Mapping[str, float]]], str]:
    """Learn from the messages, in a database without evidence; measure the tested tasks by each
    ranking; tell the standing."""
    store = PostgresEvidenceStore(pools)
    guarded, forced = Evidence(store), Forced(store)
    learning = UseLearning(store, guarded, parts.embedder, parts.index, parts.candidates)
    for message in messages:
        await on_uses_observed(message, learning)
    await guarded.held(SCOPE)  # look at the state as it is now
    kinds = {"zero-shot": None, "forced": forced, "guarded": guarded}
    measured = {
        at: {
            kind: quality(await parts.ranked(tasks[at].query, evidence), tasks[at].relevant)
            for kind, evidence in kinds.items()
        }
        for at in tested
    }
    standing = (await store.stand(SCOPE)).standing
    gain = standing.ndcg
    return measured, (
        f"{'on' if standing.used else 'off'} {gain.mean:+.3f} [{gain.low:+.3f} {gain.high:+.3f}] "
        f"over {standing.trials}"
    )


def interval(values: Sequence[float]) -> str:
    """A mean and its 95 % bootstrap interval over tasks."""
    found = np.asarray(values)
    chosen = np.random.default_rng(0).integers(len(found), size=(_SAMPLES, len(found)))
    low, high = np.percentile(found[chosen].mean(axis=1), (2.5, 97.5))
    return f"{found.mean():+.3f} [{low:+.3f} {high:+.3f}]"


async def measure(dataset: Dataset, draws: int, kinds: Sequence[str], users: int) -> None:
    """Print the figures of each kind of use; a task's are means over the draws of folds."""
    tasks = dataset.tasks
    async with (
        running_databases() as databases,
        registry_pools(databases) as listed,
        aclosing(BackgroundEmbedder(MiniLmEmbedder.model_name, MiniLmEmbedder.load)) as background,
    ):
        embedder = RememberedEmbedder(background)
        index, store = await indexed(dataset.tools, embedder, listed)
        tools = [tool.tool_id for tool in dataset.tools]
        parts = Parts(embedder, RememberedIndex(index), RememberedCandidates(store, tools))
        print(f"{dataset.name}: {len(tools)} tools, {len(tasks)} tasks, {draws} draws of folds")
        served_as = served_by(tasks, tools)
        for name in kinds:
            found: dict[str, dict[int, list[Mapping[str, float]]]] = {}
            stands: list[str] = []
            for number in range(draws):
                draw = random.Random(number)  # noqa: S311 - fixed draws
                places = draw.sample(range(len(tasks)), len(tasks))
                for part in range(FOLDS):
                    tested = places[part::FOLDS]
                    trained = [at for at in places if at not in tested]
                    messages = uses(trained, tasks, served_as[name], draw, users)
                    async with registry_pools(databases) as pools:
                        measured, stand = await fold(pools, parts, tasks, tested, messages)
                    stands.append(stand)
                    for at, by_kind in measured.items():
                        for kind, values in by_kind.items():
                            found.setdefault(kind, {}).setdefault(at, []).append(values)
            print_figures(name, found, stands)


def print_figures(
    name: str,
    found: Mapping[str, Mapping[int, Sequence[Mapping[str, float]]]],
    stands: Sequence[str],
) -> None:
    """Print one kind of use."""
    print(f"\n{name}")
    means = {
        kind: {
            metric: [
                float(np.mean([each[metric] for each in of_task[at]])) for at in sorted(of_task)
            ]
            for metric in METRICS
        }
        for kind, of_task in found.items()
    }
    for kind, values in means.items():
        cells: list[str] = []
        for metric in METRICS:
            gains = np.subtract(values[metric], means["zero-shot"][metric]).tolist()
            cells.append(f"{metric} {interval(values[metric])} gain {interval(gains)}")
        print(f"  {kind:<10}" + "   ".join(cells))
    print("  the guard after each fold: " + "; ".join(stands))


def main() -> int:
    """Return exit code 2 for a data set that cannot be read."""
    parser = argparse.ArgumentParser(description="Quality of discovery after use.")
    parser.add_argument("--livemcpbench", type=Path, default=LIVEMCPBENCH, metavar="FOLDER")
    parser.add_argument("--draws", type=int, default=1, metavar="N", help="draws of the folds")
    parser.add_argument("--users", type=int, default=USERS, choices=range(1, PRINCIPALS + 1))
    parser.add_argument("--uses", nargs="+", choices=KINDS, default=KINDS[:1])
    arguments = parser.parse_args()
    try:
        dataset = read_livemcpbench(arguments.livemcpbench)
    except DatasetError as error:
        print(f"learned: {error}", file=sys.stderr)
        return 2
    asyncio.run(measure(dataset, arguments.draws, arguments.uses, arguments.users))
    return 0


if __name__ == "__main__":
    sys.exit(main())
