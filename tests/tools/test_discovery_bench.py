"""The benchmark of discovery reads data sets and computes metrics correctly."""

import json
import math
from pathlib import Path

import pytest

from bench.discovery.datasets import DatasetError, Task, read_jsonl, read_livemcpbench
from bench.discovery.metrics import METRICS, estimates, quality
from pml_common.contracts.tool import JsonObject

READ: JsonObject = {"id": "a", "server": "fs", "name": "read", "description": "Reads a file."}
WRITE: JsonObject = {"id": "b", "server": "fs", "name": "write file", "description": None}
ASK: JsonObject = {"query": "read it", "relevant": ["a"]}


def _lines(folder: Path, name: str, *lines: object) -> Path:
    file = folder / name
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return file


def test_the_metrics_are_those_of_the_textbook() -> None:
    found = quality(["x", "a", "y", "b"], {"a", "b", "c"})
    assert set(found) == set(METRICS)
    assert (found["R@1"], found["R@3"], found["R@5"]) == pytest.approx((0.0, 1 / 3, 2 / 3))
    gain = 1 / math.log2(3) + 1 / math.log2(5)
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert found["nDCG@5"] == pytest.approx(gain / ideal)
    assert found["MRR"] == pytest.approx(0.5)


def test_a_perfect_ranking_scores_one_and_an_empty_one_nothing() -> None:
    assert quality(["a", "b"], {"a", "b"}) == {metric: pytest.approx(1.0) for metric in METRICS} | {
        "R@1": 0.5
    }
    assert set(quality([], {"a"}).values()) == {0.0}


def test_an_interval_is_around_its_mean_and_the_same_each_time() -> None:
    measured = [quality(["a", "b"], {each}) for each in "aabbabab"]
    found = estimates(measured, seed=0)["MRR"]
    assert found.mean == pytest.approx(0.75)
    assert found.low < found.mean < found.high
    assert estimates(measured, seed=0)["MRR"] == found


def test_a_data_set_is_read_line_by_line(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = _lines(tmp_path, "t.jsonl", READ | {"input_schema": schema}, WRITE)
    queries = _lines(tmp_path, "q.jsonl", ASK, {"query": "x" * 5000, "relevant": ["a", "b"]})
    dataset = read_jsonl(tools, queries)
    assert [tool.tool_id for tool in dataset.tools] == ["fs:read", "fs:write-file"]
    assert dataset.tools[0].input_schema == schema
    assert dataset.tasks == [
        Task("read it", frozenset({"fs:read"})),
        Task("x" * 4000, frozenset({"fs:read", "fs:write-file"})),
    ]


def test_tools_with_the_same_name_stay_apart(tmp_path: Path) -> None:
    tools = _lines(tmp_path, "t.jsonl", READ, READ | {"id": "b"})
    queries = _lines(tmp_path, "q.jsonl", {"query": "x", "relevant": ["b"]})
    dataset = read_jsonl(tools, queries)
    assert dataset.tasks[0].relevant == {"fs:read-2"}


FAULTS: list[tuple[list[JsonObject], list[JsonObject], str]] = [
    ([READ, READ], [ASK], "line 2: the id 'a' is given twice"),
    ([READ], [{"query": "x", "relevant": ["z"]}], "line 1: 'z' is no id of"),
    ([READ], [{"query": "x", "relevant": []}], "line 1: relevant"),
    ([{"id": "a", "server": "fs"}], [ASK], "line 1: name: is missing"),
    ([READ], [], "no query has a relevant tool"),
]


@pytest.mark.parametrize(("tools", "queries", "message"), FAULTS)
def test_a_fault_of_a_data_set_is_told_with_its_place(
    tmp_path: Path, tools: list[JsonObject], queries: list[JsonObject], message: str
) -> None:
    given = _lines(tmp_path, "t.jsonl", *tools), _lines(tmp_path, "q.jsonl", *queries)
    with pytest.raises(DatasetError, match=message):
        read_jsonl(*given)


def test_of_livemcpbench_every_tool_with_an_annotated_name_is_relevant(tmp_path: Path) -> None:
    servers: list[JsonObject] = [
        {"tools": {name: {"tools": [{"name": "read", "inputSchema": {}}]}}}
        for name in ("fs", "disk")
    ]
    task = {"Question": "read it", "Annotator Metadata": {"Tools": "1. read\n2. gone"}}
    none = {"Question": "fly", "Annotator Metadata": {"Tools": "1. fly"}}
    (tmp_path / "tools.json").write_text(json.dumps(servers))
    (tmp_path / "all_annotations.json").write_text(json.dumps([task, none]))
    dataset = read_livemcpbench(tmp_path)
    assert dataset.tasks == [Task("read it", frozenset({"fs:read", "disk:read"}))]


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="No such file"):
        read_livemcpbench(tmp_path)
