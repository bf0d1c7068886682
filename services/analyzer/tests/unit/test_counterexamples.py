"""Small programs, found by generating large ones, that once ran another way than was drawn."""

import pytest

from services.analyzer.tests.programs import analysed, flow

CASES = {
    "a default in a pattern is made after the value": (
        "const { a = mcp.fs.read({}) } = mcp.fs.stat({}); mcp.fs.list({});",
        "n2>n1 n1>n3 n2>n3",
    ),
    "also where the pattern is assigned": (
        "let a; [a = mcp.fs.read({})] = mcp.fs.stat({}); mcp.fs.list({});",
        "n2>n1 n1>n3 n2>n3",
    ),
    "what is assigned to is found first": (
        "const a = []; a[mcp.fs.read({})] = mcp.fs.stat({});",
        "n1>n2",
    ),
    "an index after an optional chain may not be needed": (
        "const a = mcp.git.status(); a?.[mcp.fs.read({})][mcp.fs.stat({})]; mcp.fs.list({});",
        "n1>n2 n2>n3 n1>n3 n3>n4 n2>n4 n1>n4",
    ),
}


@pytest.mark.parametrize(("code", "edges"), CASES.values(), ids=CASES)
def test_it_is_drawn_as_it_runs(code: str, edges: str) -> None:
    assert sorted(flow(analysed(code)).split()) == sorted(edges.split())
