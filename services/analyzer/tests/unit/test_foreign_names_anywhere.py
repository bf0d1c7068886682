"""Foreign names in programs of any form: what is replaced keeps every position, and is replaced
once."""

from hypothesis import given
from hypothesis import strategies as st

from pml_analysis.analysis import Analysis, analyze
from pml_analysis.syntax.source import Source
from pml_common.contracts.decision import Policy
from services.analyzer.tests.support.foreign_names import TOOLS
from services.analyzer.tests.support.invariants import faults

_ROOTS = (
    "mcp",
    "tools",
    "codemode",
    "(mcp as any)",
    "mcp.tools",
    "behave",
    "e",
    "args.tools",
    "own",
)
_PARTS = (
    *(".behave", ".echo", ".behave_echo", ".everything", ".get_sum", "?.getSum", ".nothing"),
    *('["behave"]', '["get" + "_sum"]', "[args.n]", "[(own(), 'echo')]", "!", "\n  .echo", ".call"),
    *(" /* ☃ */ .File_System", ".callTool", ".cap_a_b", ".status", ".then", ".map"),
)
_GIVEN = (
    *("({})", "()", "({ a: 1 }, 2)", "``", "<any>({})", "?.({})", '("behave_echo", {})', ""),
    *("({ name: 'behave_echo',\r\n  arguments: { a: 1 } })", '("behave", "echo")', "(...own)"),
)
_ALONE = (
    *("callTool('behave', 'echo', X)", "mcp__behave__echo(X)", "call_tool({ tool: 'odd_then' })"),
    *("mcp.call('everything_get_sum', X)", "Object.keys(mcp)", "'x' in mcp.behave", "cap_a_b(X)"),
)
_FRAMES = (
    *("X;", "return X;", "await X;\n", "const { get_sum, echo: b = X } = mcp.everything;"),
    *("for (const t in X) { own(t); }", "if (X) { X } else X;", "const e = mcp.everything, f = X;"),
    *("[1, 2].map((n) => X);", "`a ${X} b`;", "const own = (tools) => X;", "({ get_sum: f } = X);"),
)


def _chain(root: str, parts: list[str], given: str) -> str:
    return root + "".join(parts) + given


def _around(outer: str, x: str) -> str:
    return outer.replace("X", f"{{ x: {x} }}").replace("({})", f"({{ x: {x} }})")


def _framed(frame: str, x: str) -> str:
    return frame.replace("X", x)


_CHAINS = st.builds(
    _chain,
    st.sampled_from(_ROOTS),
    st.lists(st.sampled_from(_PARTS), max_size=3),
    st.sampled_from(_GIVEN),
)
_OUTER = _CHAINS | st.sampled_from(_ALONE)
_EXPRESSIONS = _OUTER | st.builds(_around, _OUTER, _OUTER)
PROGRAMS = st.lists(
    st.builds(_framed, st.sampled_from(_FRAMES), _EXPRESSIONS), min_size=1, max_size=4
).map("\n".join)


@given(PROGRAMS)
def test_every_other_character_stays_in_its_place(text: str) -> None:
    outcome = analyze(text, tools=TOOLS, policy=Policy(), submitted=True)
    lines = Source(text)
    if not isinstance(outcome, Analysis):
        assert not (wrong := faults(text, outcome)), wrong
        return
    kept, at = "", 0
    for start, end in outcome.inserted:
        kept, at = kept + outcome.code[at:start], end
    kept += outcome.code[at:]
    assert len(kept) == len(text)
    assert [n for n, char in enumerate(kept) if char in "\r\n"] == [
        n for n, char in enumerate(text) if char in "\r\n"
    ]
    assert [outcome.source.line(n + 1) for n in range(lines.line_count)] == [
        lines.line(n + 1) for n in range(lines.line_count)
    ]
    assert not [wrong for wrong in faults(kept, outcome) if "behind its line" not in wrong]
    again = analyze(outcome.code, tools=TOOLS, policy=Policy(), submitted=True)
    assert isinstance(again, Analysis)
    assert (again.code, again.code_hash) == (outcome.code, outcome.code_hash)
    assert not any("Names of tools" in each for each in again.notices)


@given(PROGRAMS)
def test_no_call_that_was_seen_is_lost(text: str) -> None:
    before = analyze(text, tools=TOOLS, policy=Policy())
    after = analyze(text, tools=TOOLS, policy=Policy(), submitted=True)
    if isinstance(before, Analysis) and isinstance(after, Analysis):
        assert len(after.structure.nodes) >= len(before.structure.nodes)
    elif isinstance(before, Analysis):
        assert any(host in text for host in ("tools", "codemode"))
