"""Lone surrogates that a program writes as escapes: what is told of it cannot contain them."""

import pytest

from pml_analysis.report import to_json
from services.analyzer.tests.support.programs import analysed, complaints

HALF = "\\ud800"
TOLD = {
    "the name of an argument": f'await mcp.fs.read({{ "{HALF}": 1 }});',
    "the name of a part": f'await mcp.fs.read({{ path: {{ "{HALF}": 1 }} }});',
    "the name among others": f'await mcp.fs.read({{ path: "{HALF}", "a{HALF}b": 1 }});',
    "a parameter": f'return args["{HALF}"];',
    "a part of a parameter": f'return args.mode["{HALF}"].x + 1;',
    "a parameter by a pattern": f'const {{ "{HALF}": a }} = args; return a;',
    "a part of a result": (
        f'const r = await mcp.fs.read({{}}); await mcp.fs.read({{ path: r["{HALF}"] }});'
    ),
    "a spread": f'await mcp.fs.read({{ ...args["{HALF}"] }});',
    "a case": f'switch (args.x) {{ case "{HALF}": await mcp.fs.read({{}}); }}',
    "a value that is compared": f'if (args.mode === "{HALF}") return 1; return 2;',
    "another escape": 'await mcp.fs.read({ "\\u{dfff}": 1 });',
    "the second half": 'await mcp.fs.read({ "\\uDC00": 1 });',
}
NOT_TOLD = {
    "a value": f'await mcp.fs.read({{ path: "{HALF}" }});',
    "a result": f'return "{HALF}";',
    "a regular expression": f"return /[{HALF}-\\udfff]/.test(args.text);",
    "a comment": f"// {HALF}\nreturn 1;",
    "a whole character": 'await mcp.fs.read({ "\\ud83d\\ude00": 1 });',
}


@pytest.mark.parametrize("text", TOLD.values(), ids=TOLD)
def test_a_lone_surrogate_that_would_be_told_is_refused_at_its_place(text: str) -> None:
    (complaint,) = complaints(text)
    place, _, why = complaint.partition(" ")
    column = int(place.removeprefix("1:"))
    assert text[column - 1 :].startswith(('"', "\\ud", "\\uD"))
    assert why.startswith("This has half a character, a lone surrogate")
    assert "String.fromCharCode" in why


def test_the_place_is_that_of_the_name_and_not_of_a_value() -> None:
    text = TOLD["the name among others"]
    (complaint,) = complaints(text)
    column = text.index('"a') + 1
    assert complaint.startswith(f"1:{column} ")


def test_one_that_is_composed_is_refused_where_it_is_written() -> None:
    text = f"const half = `{HALF}`; await mcp.fs.read({{ [half]: 1 }});"
    (complaint,) = complaints(text)
    assert complaint.startswith(f"1:{text.index(HALF) + 1} ")


@pytest.mark.parametrize("text", NOT_TOLD.values(), ids=NOT_TOLD)
def test_any_other_is_a_text_like_others(text: str) -> None:
    outcome = analysed(text)
    assert outcome.structure.model_dump_json()
    assert str(to_json(outcome)).encode()
