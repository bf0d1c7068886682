"""Provides edges of a whole tool catalog: their number, distribution and cost (p50 of CPU
milliseconds).

`uv run python bench/provides.py [tools.json of LiveMCPBench] [rounds]`

Few of its tools declare an output, so two synthetic variants are measured too: every tool returns a
text, and every tool returns the fields that it takes.
"""

import json
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Any

from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.provides.tool_edges import create_provides_edges

CATALOGUE = Path(__file__).parents[2] / "shared/data/livemcpbench/tools.json"


def read_catalog(path: Path) -> list[ToolDefinition]:
    """The data set's tools."""
    document: list[Any] = json.loads(path.read_text(encoding="utf-8"))
    return [
        ToolDefinition(
            server=server,
            name=tool["name"],
            input_schema=tool["inputSchema"],
            output_schema=tool.get("outputSchema"),
        )
        for entry in document
        for server, listed in entry["tools"].items()
        for tool in listed["tools"]
    ]


def with_output(tool: ToolDefinition, output: JsonObject) -> ToolDefinition:
    """The tool with this output."""
    return tool.model_copy(update={"output_schema": output})


def echoing(tool: ToolDefinition) -> ToolDefinition:
    """The tool with its input as its output."""
    taken = tool.input_schema.get("properties", {})
    return with_output(tool, {"type": "object", "properties": taken})


def measure(title: str, tools: Sequence[ToolDefinition], rounds: int) -> None:
    """Print one catalog's figures."""
    times: list[float] = []
    for _ in range(rounds):
        began = process_time()
        edges = create_provides_edges(tools)
        times.append(process_time() - began)
    edges = create_provides_edges(tools)
    pairs = len(tools) * (len(tools) - 1)
    coverage = Counter(edge.coverage for edge in edges)
    providers, consumers = ({edge.from_ for edge in edges}, {edge.to for edge in edges})
    among = sum(edge.from_.partition(":")[0] == edge.to.partition(":")[0] for edge in edges)
    print(
        f"{title:<24} {len(edges):>6} edges ({len(edges) / pairs:.2%} of pairs)"
        f"   strict {coverage['strict']} partial {coverage['partial']}"
        f" optional {coverage['optional']}   inside a server {among}"
        f"   {len(providers)} providers, {len(consumers)} consumers"
        f"   {statistics.median(times) * 1e3:.0f} ms"
    )


def main(path: Path, rounds: int) -> None:
    """Print all figures."""
    tools = read_catalog(path)
    declared = sum(tool.output_schema is not None for tool in tools)
    print(f"{len(tools)} tools, {declared} with an output schema")
    measure("as declared", tools, rounds)
    measure(
        "as if all gave a text", [with_output(tool, {"type": "string"}) for tool in tools], rounds
    )
    measure("as if all echoed", [echoing(tool) for tool in tools], rounds)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(
        Path(arguments[0]) if arguments else CATALOGUE,
        int(arguments[1]) if len(arguments) > 1 else 5,
    )
