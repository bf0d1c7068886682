"""Programs that once went wrong, found by fuzzing and in real code, made small."""

import pytest

from services.analyzer.tests.fuzzing import check
from services.analyzer.tests.programs import analysed, flow, nodes

OWN_NAMES = {
    "called where it is written, by its name nowhere": (
        "const a = (function f() { mcp.fs.read({}); })();",
        "n1 fs:read",
        "",
    ),
    "called where it is written, and by itself": (
        "(function f(a) { mcp.fs.read({}); if (a) f(a - 1); })(3); mcp.fs.stat({});",
        "l1 recursion f, n1 fs:read, d1 a, n2 fs:stat",
        "l1>>n1 n1>d1 d1>l1:true d1>n2:false",
    ),
    "run by a method, and by itself": (
        "args.a.map(function f(a) { mcp.fs.read({}); if (a) f(a - 1); });",
        "l1 map args.a, l2 recursion f, n1 fs:read, d1 a",
        "l1>>l2 l2>>n1 n1>d1 d1>l1:false d1>l2:true",
    ),
    "handed to nobody known": (
        "args.a(function f() { mcp.fs.read({}); });",
        "n1 fs:read",
        "",
    ),
}


@pytest.mark.parametrize(("code", "drawn", "ways"), OWN_NAMES.values(), ids=OWN_NAMES)
def test_a_function_expression_with_a_name_of_its_own(code: str, drawn: str, ways: str) -> None:
    analysis = analysed(code)
    assert nodes(analysis) == drawn
    assert sorted(flow(analysis).split()) == sorted(ways.split())
    check(code)
