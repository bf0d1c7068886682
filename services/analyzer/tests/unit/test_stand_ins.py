"""Text that the grammar misreads, and its stand-ins."""

import pytest

from pml_analysis.syntax import parser
from pml_analysis.syntax.source import Source
from pml_analysis.syntax.stand_ins import alternative_reading, with_stand_ins
from pml_analysis.syntax.tree import Tree
from services.analyzer.tests.support.programs import (
    analysed,
    arguments,
    complaints,
    nodes,
    warnings,
)


def _tree(code: str) -> Tree:
    source = Source(code)
    raw = parser.parse(source)
    assert not raw.root_node.has_error, code
    return parser.view(raw, source, nesting=100)


@pytest.mark.parametrize(
    ("code", "kind", "texts"),
    [
        ("f(a < -1, -b);", "-", ["-", "-"]),
        ("f('\u00e9', a < -1, ~b);", "~", ["~"]),
        ("for await (let [a] of b) { var c; }", "let", ["let"]),
        ("for await (let [a] of b) { for await (var [c] of d) {} }", "var", ["var"]),
        ("return a?.5:.25;", "number", [".5", ".25"]),
        ("return a ?? .5;", "number", [".5"]),
    ],
)
def test_tokens_are_what_the_author_wrote(code: str, kind: str, texts: list[str]) -> None:
    tree = _tree(code)
    assert [tree.text(node) for node in tree.of(kind)] == texts


@pytest.mark.parametrize(
    "text",
    [
        "a < b ? c : d",
        "a?.b?.[0]?.(1)",
        "for await (const [a] of b) {}",
        "for await (let a of b) {}",
        r"'\\u0041 \\x41 \\\\u \\u{1f600} \\n'",
    ],
)
def test_what_is_read_rightly_is_left_as_it_is(text: str) -> None:
    assert with_stand_ins(text.encode()) == text.encode()
    assert alternative_reading(text.encode()) is None


def test_a_stand_in_is_as_long_as_what_it_stands_for() -> None:
    text = b"a\r?.5:1; for  await ( let\n{b} of c) { t`\\u \\xg`; f(a <  -b, c); }"
    other = alternative_reading(with_stand_ins(text))
    assert other is not None
    assert other != text
    assert len(other) == len(text)


def test_negative_types_stay_types() -> None:
    tree = _tree("let a: Array<-1> = []; f<-1>(a);")
    assert tree.of("type_arguments")
    assert complaints("let a: Array<-1> = []; f(a < -1, 2;") != []


def test_less_than_a_decrement_is_not_misread() -> None:
    assert alternative_reading(b"f(a <--b, 2)") is None


def test_values_and_names_are_those_of_the_text() -> None:
    analysis = analysed("return await mcp.fs.read({ path: [-1 < -2, 3], n: -5 });")
    assert arguments(analysis)["n"] == {"type": "literal", "value": -5}
    read = analysed("for await (let [x] of args.list) await mcp.fs.read({ path: x }); return x;")
    assert read.free == ("x",)
    assert nodes(read).count("n1") == 1
    assert warnings("for await (let [x] of args.list) { x; }") == []


def test_escapes_are_still_refused_outside_tags() -> None:
    assert complaints("return `\\xg`;")[0].startswith("1:9 \\x is not followed by what it needs")


def test_types_may_not_nest_deeper_than_code() -> None:
    deep = f"let a: {'Array<' * 600}any{'>' * 600};"
    assert complaints(deep)[0].startswith("1:6 This is nested too deeply")
    cast = f"return 1 as {'Array<' * 600}any{'>' * 600};"
    assert "too deep" in complaints(cast)[0]
    assert analysed(f"let a: [{', '.join(['Array<any>'] * 200)}];").diagnostics == ()
    assert analysed(f"return '{'x' * 1_000}';").diagnostics == ()
