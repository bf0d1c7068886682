"""The ends of nodes: before the comments that the grammar counts among them."""

import pytest

from services.analyzer.tests.support.programs import analysed

CASES = {
    "after a loop's only statement": (
        "for (;;) if (1) { mcp.fs.read({}); } // c\nelse { break; } // d\nreturn 1;",
        'for (;;) { __pml.round("l1"); if (__pml.decide("d1", 1)) {'
        ' __pml.at("n1", mcp.fs.read)({}); } // c\nelse { break; } } // d\nreturn 1;',
    ),
    "inside each other": (
        "while (1) a: if (1) if (1) { mcp.fs.read({}); } /* c */ // d\n",
        'while (1) { __pml.round("l1"); a: if (__pml.decide("d1", 1)) if (__pml.decide("d2", 1))'
        ' { __pml.at("n1", mcp.fs.read)({}); } } /* c */ // d\n',
    ),
    "after the block of a try": (
        "try { mcp.fs.read({}); } // c\ncatch { 1; }",
        'try { __pml.at("n1", mcp.fs.read)({}); ; __pml.took("d1", "ok"); } // c\n'
        'catch { __pml.took("d1", "error");  1; }',
    ),
    "beyond what ASCII has": (
        "'\U0001f600'; while (1) if (1) { mcp.fs.read({}); } // \U0001f600\n",
        '\'\U0001f600\'; while (1) { __pml.round("l1"); if (__pml.decide("d1", 1))'
        ' { __pml.at("n1", mcp.fs.read)({}); } } // \U0001f600\n',
    ),
    "in a text that is nothing else but a call": ("mcp.fs.read({}) // c", None),
    "after a switch": (
        "switch (1) { case 1: if (1) { mcp.fs.read({}); } // c\n}",
        'switch (__pml.subject("d1", 1)) { case 1: __pml.chosen("d1", "case:1");'
        ' if (__pml.decide("d2", 1)) { __pml.at("n1", mcp.fs.read)({}); } // c\n'
        '; default: __pml.chosen("d1", "default"); }',
    ),
}


@pytest.mark.parametrize(("code", "expected"), CASES.values(), ids=CASES)
def test_what_is_put_in_stands_before_comments(code: str, expected: str | None) -> None:
    told = expected or '__pml.at("n1", mcp.fs.read)({}) // c'
    assert analysed(code).instrumented == told
