"""Quality of discovery: recall, nDCG and reciprocal rank of the registry's ranking on annotated
intents, beside BM25, plain cosine and their reciprocal rank fusion.

The registry's own handlers rank, over its stores in an embedded Postgres. LiveMCPBench by default,
else any data set: lines {"id", "server", "name", "description", "input_schema"?} of tools and lines
{"query", "relevant": [ids]} of queries. Constants of the ranking were tuned on one half of
LiveMCPBench's tasks, a fixed draw; the other half, reported beside it, was seen at times and is no
blind test. In brackets the 95 % bootstrap interval over tasks; MRR counts the first 100 places.
`uv run python bench/discover.py [--livemcpbench F] [--tools T.jsonl --queries Q.jsonl] [--json]`
"""

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

from discovery.database import registry_pools, running_databases
from discovery.datasets import Dataset, DatasetError, read_jsonl, read_livemcpbench
from discovery.metrics import METRICS, Estimate, estimates, quality
from discovery.rankings import rankings

from pml_registry.adapters.background_embedder import BackgroundEmbedder
from pml_registry.adapters.minilm import MiniLmEmbedder

LIVEMCPBENCH = Path(__file__).parents[2] / "shared/data/livemcpbench"
SEED = 0

Report = Mapping[str, Mapping[str, Mapping[str, Estimate]]]
"""Estimates by ranking, set of tasks and metric."""


async def measure(dataset: Dataset) -> Report:
    """Rank every task's query by every ranking."""
    halves = halves_of(len(dataset.tasks))
    report: dict[str, Mapping[str, Mapping[str, Estimate]]] = {}
    async with (
        running_databases() as databases,
        registry_pools(databases) as pools,
        aclosing(BackgroundEmbedder(MiniLmEmbedder.model_name, MiniLmEmbedder.load)) as embedder,
    ):
        for name, ranking in (await rankings(dataset.tools, embedder, pools)).items():
            measured = [quality(await ranking(task.query), task.relevant) for task in dataset.tasks]
            report[name] = {
                half: estimates([measured[at] for at in places], SEED)
                for half, places in halves.items()
            }
    return report


def halves_of(count: int) -> Mapping[str, Sequence[int]]:
    """Places of all tasks, of the half that constants may be tuned on, and of the other half; a
    single task is in no half."""
    places = list(range(count))
    random.Random(SEED).shuffle(places)  # noqa: S311 - a fixed draw, no secret
    sets = {"all": places, "tuning half": places[: count // 2], "other half": places[count // 2 :]}
    return {name: chosen for name, chosen in sets.items() if count > 1 or name == "all"}


def print_report(dataset: Dataset, report: Report) -> None:
    """Print a table for each set of tasks."""
    print(f"{dataset.name}: {len(dataset.tools)} tools, {len(dataset.tasks)} tasks")
    for half in next(iter(report.values())):
        print(f"\n{half:<12}" + "".join(f"{metric:^21}" for metric in METRICS))
        for name, by_half in report.items():
            found = [by_half[half][metric] for metric in METRICS]
            cells = (f"{each.mean:.3f} [{each.low:.3f} {each.high:.3f}]" for each in found)
            print(f"{name:<12}" + "".join(f"{cell:^21}" for cell in cells))


def as_json(dataset: Dataset, report: Report) -> str:
    """The same as JSON."""
    figures = {
        name: {
            half: {metric: asdict(each) for metric, each in found.items()}
            for half, found in by_half.items()
        }
        for name, by_half in report.items()
    }
    counts = {"tools": len(dataset.tools), "tasks": len(dataset.tasks)}
    return json.dumps({"dataset": dataset.name, **counts, "rankings": figures}, indent=2)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Quality of discovery on annotated intents.")
    parser.add_argument("--livemcpbench", type=Path, default=LIVEMCPBENCH, metavar="FOLDER")
    parser.add_argument("--tools", type=Path, metavar="T.jsonl")
    parser.add_argument("--queries", type=Path, metavar="Q.jsonl")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if (arguments.tools is None) != (arguments.queries is None):
        parser.error("a data set of your own is both --tools and --queries")
    return arguments


def main() -> int:
    """Return exit code 2 for a data set that cannot be read."""
    arguments = _arguments()
    try:
        if arguments.tools is None:
            dataset = read_livemcpbench(arguments.livemcpbench)
        else:
            dataset = read_jsonl(arguments.tools, arguments.queries)
    except DatasetError as error:
        print(f"discover: {error}", file=sys.stderr)
        return 2
    report = asyncio.run(measure(dataset))
    if arguments.json:
        print(as_json(dataset, report))
    else:
        print_report(dataset, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
