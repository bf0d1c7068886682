"""The syntax layer: positions, literals, patterns, edits, the tree itself."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_sitter import Node as RawNode

from pml_analysis.syntax import parser
from pml_analysis.syntax.edits import Wrap, apply
from pml_analysis.syntax.literals import is_unicode, number_value, string_value
from pml_analysis.syntax.patterns import Part, targets
from pml_analysis.syntax.queries import captures
from pml_analysis.syntax.source import Source
from pml_analysis.syntax.tree import Tree

LINE_ENDS = ["\n", "\r\n", "\r", "\u2028", "\u2029"]


def _tree(code: str) -> Tree:
    source = Source(code)
    return parser.view(parser.parse(source), source, nesting=100)


def test_lines_end_where_javascript_ends_them() -> None:
    source = Source("a\nb\r\nc\rd\u2028e\u2029f")
    assert source.line_count == 6
    assert [source.line(number) for number in range(1, 7)] == list("abcdef")


@given(st.lists(st.tuples(st.text("ab\U0001f600", min_size=1), st.sampled_from(LINE_ENDS))))
def test_every_offset_has_a_place_and_its_line(lines: list[tuple[str, str]]) -> None:
    source = Source("".join(text + end for text, end in lines))
    assert source.line_count == len(lines) + 1
    offset = 0
    for number, (text, end) in enumerate(lines, start=1):
        assert source.line(number) == text
        assert source.position(offset) == (number, 1)
        assert source.position(offset + len(text)) == (number, len(text) + 1)
        offset += len(text) + len(end)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("''", ""),
        ("'a\\nb\\t\\\\\\'\\0'", "a\nb\t\\'\0"),
        ('"\\x41\\u0042\\u{43}\\q"', "ABCq"),
        ("'\\ud83d\\ude00'", "\U0001f600"),
        ("'\\u{1F600}'", "\U0001f600"),
        ("'a\\\nb\\\r\nc'", "abc"),
        ("'\\u{110000}'", "\\u{110000}"),
    ],
)
def test_texts_are_read_as_javascript_reads_them(text: str, value: str) -> None:
    assert string_value(text) == value


def test_half_a_character_is_no_unicode() -> None:
    assert not is_unicode(string_value("'\\ud800'"))
    assert is_unicode("é")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("12_345", 12345),
        ("1.50", 1.5),
        (".5", 0.5),
        ("5.", 5),
        ("1e3", 1000),
        ("1E-2", 0.01),
        ("0xFf", 255),
        ("0b101", 5),
        ("0O17", 15),
        ("1e400", None),
        ("9007199254740993", 9007199254740992.0),
        ("0x" + "f" * 100, float(int("f" * 100, 16))),
        ("0x" + "f" * 300, None),
        ("10n", None),
        ("010", None),
    ],
)
def test_numbers_are_read_as_javascript_reads_them(text: str, value: float | None) -> None:
    found = number_value(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a", "a="),
        ("{ a, b: c, ...d }", "a=.a c=.b d="),
        ("{ 'a': b, ['c']: d, [e]: f, 0: g }", "b=.a d=.c f=.? g=.?"),
        ("{ a = 1 }", "a=.a|1"),
        ("{ a: { b: [c = 2] } = {} }", "c=.a.b.0|.b.0|2"),
        ("[a, , b, ...c]", "a=.0 b=.2 c=.?"),
        ("[, a = 1]", "a=.1|1"),
    ],
)
def test_patterns_say_which_part_each_name_gets(pattern: str, expected: str) -> None:
    tree = _tree(f"const {pattern} = v;")
    (declarator,) = tree.of("variable_declarator")
    name, value = declarator.children
    found: list[str] = []
    for target in targets(tree, name, (Part(value),)):
        parts = "|".join(
            (tree.text(part.value) if part.is_default and not part.path and part.value else "")
            + "".join(f".{'?' if step is None else step}" for step in part.path)
            for part in target.parts
        )
        found.append(f"{tree.text(target.node)}={parts}")
    assert " ".join(found) == expected


CODE = """const { a: [b = `x${1 + 2}`] } = /* c */ (await f<T>(...args))?.d['e'] as X; // \U0001f600
class A extends B<C> { static async *m(@p q = /r/g) { if ('\\u{1F600}') return; else yield* 1n } }
label: for (const [k,, v] of o) { switch (k) { case v: continue label } }"""


def test_the_tree_keeps_every_range_it_shows() -> None:
    source = Source(CODE)
    raw = parser.parse(source)
    tree = parser.view(raw, source, nesting=100)
    ranges: set[tuple[str, str]] = set()
    waiting: list[RawNode] = [raw.root_node]
    while waiting:
        node = waiting.pop()
        ranges.add((node.type, (node.text or b"").decode()))
        waiting.extend(node.children)
    for node in tree.nodes:
        assert (node.kind, tree.text(node)) in ranges


def test_the_tree_is_in_source_order_and_subtrees_are_slices() -> None:
    tree = _tree(CODE)
    assert [node.index for node in tree.nodes] == list(range(len(tree.nodes)))
    for node in tree.nodes:
        inside = list(tree.subtree(node))
        assert inside[0] is node
        assert all(node.start <= inner.start and inner.end <= node.end for inner in inside)
        assert all(child.parent is node and child in inside for child in node.children)
        assert len(inside) == 1 + sum(child.stop - child.index for child in node.children)


def test_comments_punctuation_and_types_are_left_out() -> None:
    kinds = {node.kind for node in _tree(CODE).nodes}
    assert not kinds & {"comment", "(", ")", "{", "}", ";", "type_identifier_list", "extends"}
    assert {"async", "*", "static", "const", "of", ","} <= kinds


def test_nesting_is_counted_and_its_place_told_in_code_points() -> None:
    source = Source("'\U0001f600';" + "[" * 60 + "]" * 60)
    with pytest.raises(parser.TooDeep) as caught:
        parser.view(parser.parse(source), source, nesting=40)
    assert source.text[caught.value.offset] == "["
    assert caught.value.offset < 50


def test_captures_are_in_source_order_and_code_points() -> None:
    source = Source("'\U0001f600'; export const a = 1; import('x');")
    found = captures(parser.parse(source), source, "forbidden")
    shown = [(name, source.text[start:end]) for name, start, end in found]
    assert shown == [("export", "export const a = 1;"), ("dynamic_import", "import")]


def test_a_wrap_that_crosses_another_or_the_text_is_refused() -> None:
    with pytest.raises(ValueError, match="crosses"):
        apply("abcdef", [Wrap(0, 3), Wrap(2, 5)])
    with pytest.raises(ValueError, match="outside"):
        apply("abc", [Wrap(2, 4)])


def test_wraps_that_share_an_end_nest() -> None:
    wraps = [Wrap(0, 1, "(", ")"), Wrap(0, 3, "[", "]"), Wrap(2, 3, "{", "}"), Wrap(0, 0, "!")]
    assert apply("abc", wraps).text == "![(a)b{c}]"


def test_what_is_put_in_is_stated_piece_by_piece() -> None:
    edited = apply("ab", [Wrap(0, 2, "(", ")"), Wrap(1, 1, "!")], first="// \U0001f600 ")
    assert edited.text == "// \U0001f600 (a!b)"
    assert edited.insertions == ((0, 5), (5, 6), (7, 8), (9, 10))


@st.composite
def _nested(draw: st.DrawFn) -> tuple[str, list[Wrap]]:
    """Draw a text and wraps that nest: ranges of a random tree over it."""
    text = draw(st.text("ab\n\U0001f600", max_size=30))
    ranges, wraps = [(0, len(text))], list[Wrap]()
    while ranges:
        start, end = ranges.pop()
        wraps.append(Wrap(start, end, "<", ">"))
        if end - start > 1 and draw(st.booleans()):
            middle = draw(st.integers(start + 1, end - 1))
            ranges += [(start, middle), (middle, end)]
    return text, draw(st.permutations(wraps))


@given(_nested())
def test_wraps_keep_every_character_and_nest(case: tuple[str, list[Wrap]]) -> None:
    text, wraps = case
    result, insertions = apply(text, wraps)
    kept = [result[end:start] for (_, end), (start, _) in pairwise([(0, 0), *insertions])]
    assert "".join([*kept, result[insertions[-1][1] :]]) == text
    assert result.replace("<", "").replace(">", "") == text
    assert result.count("<") == result.count(">") == len(wraps)
    depth = 0
    for char in result:
        depth += (char == "<") - (char == ">")
        assert depth >= 0


def test_what_a_node_does_not_have_is_said_or_nothing() -> None:
    source = Source("return;")
    tree = parser.view(parser.parse(source), source, nesting=100)
    (statement,) = tree.root.children
    assert statement.operand is None
    with pytest.raises(LookupError, match="has no name"):
        _ = statement["name"]
    with pytest.raises(LookupError, match="is the root"):
        _ = tree.root.above
