"""An analysis as JSON."""

import json

from pml_analysis.report import to_json
from services.analyzer.tests.support.programs import SOURCES_EXAMPLE, analysed, rejected

KEYS = {
    "static_structure",
    "dynamic_calls",
    "diagnostics",
    "decision",
    "parameters_schema",
    "code_hash",
    "instrumented",
}


def test_an_analysis_is_json_with_every_key() -> None:
    report = json.loads(json.dumps(to_json(analysed(SOURCES_EXAMPLE + "mcp[args.s].x();"))))
    assert report.keys() == KEYS
    first, *_ = report["static_structure"]["nodes"]
    assert first == {
        "id": "n1",
        "type": "task",
        "line": 1,
        "column": 20,
        "tool": "fs:stat",
        "arguments": {"path": {"type": "parameter", "parameter_name": "path", "path": ["path"]}},
        "via": [],
        "repeats": False,
    }
    edge = report["static_structure"]["edges"][1]
    assert (edge["from"], edge["to"], edge["outcome"]) == ("d1", "n2", "true")
    assert report["dynamic_calls"] == [{"expression": "mcp[args.s].x()", "line": 9, "column": 1}]
    assert report["decision"].keys() == {"verdict", "reasons", "tools"}
    assert report["diagnostics"] == []


def test_a_rejection_has_the_same_keys_and_its_diagnostics() -> None:
    report = to_json(rejected("const = 1;"))
    assert report.keys() == KEYS
    assert report["diagnostics"]
    assert {key for key, value in report.items() if value is None} == KEYS - {"diagnostics"}
