"""Invariants of every program, and of every text."""

import re
import string

from hypothesis import given, settings
from hypothesis import strategies as st
from tree_sitter import Node as RawNode

from pml_analysis.analysis import Analysis, analyze
from pml_analysis.report import to_json
from pml_analysis.syntax import parser
from pml_analysis.syntax.source import Source
from pml_common.contracts.decision import Policy
from pml_common.contracts.structure import StaticStructure
from services.analyzer.tests.generated import NAMES, PROGRAMS, render
from services.analyzer.tests.support.programs import TOOLS, analysed

_CHARACTERS = ["\n", "\0", "\ud800", "\u2028", "\U0001f600"]
_WORDS = r"""const let var mcp . fs read stat ( ) { } [ ] ; , => ? : = + && || ?? ?. ... ` ${ ' " /
    * // /* */ if else for of in while do switch case default try catch finally return throw break
    async await function class static get new typeof yield import export eval args path 1 0x 'a'
    `b` < > @ # \ \u0061 as satisfies enum label: !"""
_TOKENS = st.sampled_from([*re.findall(r"\S+", _WORDS), *_CHARACTERS])
TEXTS = st.one_of(st.text(), st.lists(_TOKENS, max_size=60).map(" ".join))


def _analyze(code: str) -> object:
    return analyze(code, tools=TOOLS, policy=Policy())


@given(TEXTS)
@settings(max_examples=3 * settings().max_examples)
def test_any_text_is_analysed_or_refused_with_a_place_in_it(text: str) -> None:
    outcome = analyze(text, tools=TOOLS, policy=Policy())
    to_json(outcome)
    if not isinstance(outcome, Analysis):
        lines = Source(text)
        assert outcome.diagnostics
        for told in outcome.diagnostics:
            assert 1 <= told.line <= lines.line_count
            assert 1 <= told.column <= len(lines.line(told.line)) + 3


@given(PROGRAMS, st.integers(0, 400), st.text(max_size=3))
def test_a_damaged_program_is_analysed_or_refused(program: str, at: int, text: str) -> None:
    code = render(program)
    _analyze(code[:at] + text + code[at + len(text) :])


@given(PROGRAMS)
def test_every_call_on_mcp_that_a_plain_look_at_the_tree_finds_is_a_node(program: str) -> None:
    code = render(program)
    analysis = analysed(code)
    places = {(node.line, node.column) for node in analysis.structure.nodes if node.id[0] == "n"}
    assert _calls_on_mcp(code) <= places
    assert not analysis.dynamic_calls


def _calls_on_mcp(code: str) -> set[tuple[int, int]]:
    """Return the positions of calls whose callee begins with `mcp`, by a walk over the parser's own
    tree."""
    found: set[tuple[int, int]] = set()
    waiting: list[RawNode] = [parser.parse(Source(code)).root_node]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children)
        if node.type == "call_expression" and (node.text or b"").startswith(b"mcp."):
            before = code.encode()[: node.start_byte].decode()
            found.add((before.count("\n") + 1, len(before) - before.rfind("\n")))
    return found


@given(PROGRAMS)
def test_structures_are_well_formed(program: str) -> None:
    analysis = analysed(render(program))
    nodes, edges = analysis.structure.nodes, analysis.structure.edges
    for kind in "ndlfj":
        ids = [node.id for node in nodes if node.id.startswith(kind)]
        numbered = [f"{kind}{number}" for number in range(1, len(ids) + 1)]
        assert ids == numbered or (kind == "j" and sorted(ids) == sorted(numbered))
    assert len(set(edges)) == len(edges)
    known = {node.id for node in nodes}
    for edge in edges:
        assert {edge.from_, edge.to} <= known
        assert (edge.outcome is not None) == (edge.type == "conditional")
        assert edge.type != "conditional" or edge.from_.startswith("d")
    dumped = analysis.structure.model_dump_json(by_alias=True)
    assert StaticStructure.model_validate_json(dumped) == analysis.structure


@given(PROGRAMS)
def test_instrumentation_only_adds(program: str) -> None:
    code = render(program, layout="\n")
    analysis = analysed(code)
    after = analysis.instrumented
    assert after.count("\n") == code.count("\n")
    reported = {node.id for node in analysis.structure.nodes if node.id[0] in "ndl"}
    assert set(re.findall(r'"([ndl]\d+)"', after)) == reported
    rest = iter(after)
    assert all(char in rest for char in code)


@given(
    PROGRAMS,
    st.permutations(string.ascii_letters[-NAMES:]),
    st.sampled_from(["\n", "  ", " /* c */ ", "\r\n"]),
)
def test_names_and_layout_change_no_hash(program: str, names: list[str], layout: str) -> None:
    other = render(program, names="".join(names), layout=layout)
    assert analysed(other).code_hash == analysed(render(program)).code_hash


@given(PROGRAMS)
def test_the_same_program_has_the_same_analysis(program: str) -> None:
    code = render(program)
    assert analysed(code) == analysed(code)
