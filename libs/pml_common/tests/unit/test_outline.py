"""Outlines of structures: rows under a branch, and rows after it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.pml_common.tests.support.builders import structure
from pml_common.drawing.outline import outline
from pml_common.drawing.rows import JumpRow, NodeRow, Row


def said(row: Row) -> str:
    """Render a row: dots for the depth; the node, branch or jump; its marks."""
    dots = "." * row.depth
    if isinstance(row, JumpRow):
        return f"{dots}{'back' if row.back else 'on'} to {row.node_id}"
    ends = " ends" if row.ends else ""
    if isinstance(row, NodeRow):
        return f"{dots}{row.node.id}{f' on {row.only_on}' if row.only_on else ''}{ends}"
    return f"{dots}{row.label}:{ends}"


CASES: dict[str, tuple[str, str, str]] = {
    "nothing": ("", "", ""),
    "in order": ("n1 n2 n3", "n1>n2 n2>n3", "n1 / n2 / n3"),
    "an argument comes first": ("n1 n2", "n2>n1", "n2 / n1"),
    "branches that meet": (
        "d1 n1 n2 n3",
        "d1>n1:true d1>n2:false n1>n3 n2>n3",
        "d1 / .true: / ..n1 / .false: / ..n2 / n3",
    ),
    "branches that do not": (
        "d1 n1 n2 n3",
        "d1>n1:true d1>n2:false n2>n3",
        "d1 / .true: / ..n1 / .false: / ..n2 / ..n3",
    ),
    "without else": (
        "d1 n1 n2",
        "d1>n1:true n1>n2 d1>n2:false",
        "d1 / .true: / ..n1 / n2",
    ),
    "last": ("d1 n1", "d1>n1:true", "d1 / .true: / ..n1"),
    "two empty branches": ("d1 n1", "d1>n1:true d1>n1:false", "d1 / n1"),
    "guards": (
        "d1 n1 d2 n2",
        "d1>n1:false n1>d2 d2>n2:false",
        "d1 on false / n1 / d2 on false / n2",
    ),
    "one branch returns": (
        "d1 n1 d2 n2 n3 n4",
        "d1>n1:true d1>d2:false d2>n2:true d2>n3:false n1>n4 n3>n4",
        "d1 / .true: / ..n1 / .false: / ..d2 / ...true: / ....n2 ends / ...false: / ....n3 / n4",
    ),
    "an empty branch returns": (
        "d1 n1 d2 n2 n4",
        "d1>n1:true d1>d2:false d2>n2:true n1>n4 n2>n4",
        "d1 / .true: / ..n1 / .false: / ..d2 / ...true: / ....n2 / ...false: ends / n4",
    ),
    "both branches return": (
        "d1 n1 d2 n4",
        "d1>n1:true d1>d2:false n1>n4",
        "d1 / .true: / ..n1 / ..n4 / .false: / ..d2",
    ),
    "a decision that only ends": (
        "d1 n1 d2 n2",
        "d1>n1:true d1>d2:false n1>n2",
        "d1 / .true: / ..n1 / ..n2 / .false: / ..d2",
    ),
    "switch": (
        "d1 n1 n2 n3",
        "d1>n1:case:a d1>n1:case:b d1>n2:default n1>n3 n2>n3",
        "d1 / .case:a, case:b: / ..n1 / .default: / ..n2 / n3",
    ),
    "switch with an empty case": (
        "d1 n1 n3",
        "d1>n1:case:a d1>n3:case:b d1>n3:default n1>n3",
        "d1 / .case:a: / ..n1 / .case:b, default: / ..on to n3 / n3",
    ),
    "switch with a case that falls through": (
        "d1 n1 n2 n3",
        "d1>n1:case:a d1>n2:case:b n1>n2 n2>n3 d1>n3:default",
        "d1 / .case:a: / ..n1 / .case:b, after n1: / ..n2 / n3",
    ),
    "switch whose default returns": (
        "d1 n1 n2 n3",
        "d1>n1:case:a d1>n2:case:b n1>n3 n2>n3",
        "d1 / .case:a: / ..n1 / .case:b: / ..n2 / .default: ends / n3",
    ),
    "try": (
        "n1 n2 d1=try n3 n4",
        "n1>n2 n1>d1 n2>d1 d1>n4:ok d1>n3:error n3>n4",
        "n1 / n2 / d1 / .error: / ..n3 / n4",
    ),
    "try whose handler returns": (
        "n1 d1=try n2",
        "n1>d1 d1>n2:ok",
        "n1 / d1 on ok / n2",
    ),
    "loop": (
        "n1 l1 n2 n3 n4",
        "n1>l1 l1>n2* n2>n3 n3>l1 l1>n4",
        "n1 / l1 / .n2 / .n3 / n4",
    ),
    "a loop in a loop, first": (
        "l1 n1 l2 n2 n3",
        "l1>n1* n1>l2 l2>n2* n2>l2 l2>l1 l1>n3",
        "l1 / .n1 / .l2 / ..n2 / n3",
    ),
    "break": (
        "l1 d1 n1 n2 n3",
        "l1>d1* d1>n1:true n1>n3 d1>n2:false n2>l1 l1>n3",
        "l1 / .d1 / ..true: / ...n1 / ...on to n3 / ..false: / ...n2 / n3",
    ),
    "break at once": (
        "l1 d1 n1 n2",
        "l1>d1* d1>n2:true d1>n1:false n1>l1 l1>n2",
        "l1 / .d1 / ..true: / ...on to n2 / ..false: / ...n1 / n2",
    ),
    "break out of two loops": (
        "l1 l2 n1 n2 n3",
        "l1>l2* l2>n1* n1>l2 n1>n3 l2>n2 n2>l1 l1>n3",
        "l1 / .l2 / ..n1 / ..on to n3 / .n2 / n3",
    ),
    "an endless loop": (
        "l1 d1 n1 n2 n3",
        "l1>d1* d1>n2:true d1>n1:false n1>l1 n2>n3",
        "l1 / .d1 / ..true: / ...on to n2 / ..false: / ...n1 / n2 / n3",
    ),
    "an endless loop in another": (
        "l1 n0 l2 d1 n1 n2 d2 n3",
        "l1>n0* n0>l2 l2>d1* d1>n2:true d1>n1:false n1>l2 n2>d2 d2>l1:true d2>n3:false",
        "l1 / .n0 / .l2 / ..d1 / ...true: / ....on to n2 / ...false: / ....n1 / .n2 / .d2"
        " / ..false: / ...on to n3 / n3",
    ),
    "a loop that is left in its first round": (
        "l1 n1 n2",
        "l1>n1* n1>n2",
        "l1 / .n1 / .n2",
    ),
    "an endless loop that is never left": ("l1 n1", "l1>n1* n1>l1", "l1 / .n1"),
    "a function that calls itself": (
        "l1=recursion n1 d1 l2 n2",
        "l1>n1* n1>d1 d1>l2:false d1>l2:true l2>l2 l2>l1* d1>n2:true l2>n2",
        "l1 / .n1 / .d1 / ..false, true: / ...l2 / ....back to l1 / ...on to n2"
        " / ..true: / ...on to n2 / n2",
    ),
    "break to the loop outside": (
        "l1 l2 d1 n1",
        "l1>l2* l2>d1* d1>l1:true d1>n1:false n1>l2 l2>l1",
        "l1 / .l2 / ..d1 / ...true: / ....back to l1 / ...false: / ....n1",
    ),
    "a loop that a try is round": (
        "l1 n1 d1=try n2 n3",
        "l1>n1* n1>l1 n1>d1 l1>d1 d1>n3:ok d1>n2:error n2>n3",
        "l1 / .n1 / d1 / .error: / ..n2 / n3",
    ),
    "continue": (
        "l1 d1 n1",
        "l1>d1* d1>l1:true d1>n1:false n1>l1",
        "l1 / .d1 / ..false: / ...n1",
    ),
    "a call in a loop's head": (
        "n0 l1 n1 n2 n3",
        "n0>n1 n1>l1 l1>n2* n2>n1 l1>n3",
        "n0 / n1 / l1 / .n2 / .back to n1 / n3",
    ),
    "a branch goes back to a loop's head": (
        "n0 l1 n1 d1 n2",
        "n0>n1 n1>l1 l1>d1* d1>n2:true n2>n1 d1>n1:false",
        "n0 / n1 / l1 / .d1 / ..true: / ...n2 / ...back to n1 / ..false: / ...back to n1",
    ),
    "a body that may begin in two places": (
        "l1 n1 n2 n3",
        "l1>n1* l1>n2* n1>n2 n2>l1 l1>n3",
        "l1 / .n1 / .n2 / n3",
    ),
    "calls side by side": (
        "n0 f1 n1 n2 j1 n3",
        "n0>f1 f1>n1 f1>n2 n1>j1 n2>j1 j1>n3",
        "n0 / f1 / .n1 / .n2 / j1 / n3",
    ),
    "strands side by side": (
        "f1 n1 n2 n3 j1",
        "f1>n1 n1>n2 f1>n3 n2>j1 n3>j1",
        "f1 / .strand 1: / ..n1 / ..n2 / .strand 2: / ..n3 / j1",
    ),
    "one for each": (
        "f1 n1 n2 j1 n3",
        "f1>n1 n1>n2 n2>j1 j1>n3",
        "f1 / .n1 / .n2 / j1 / n3",
    ),
    "a fork without its join": ("f1 n1 n2", "f1>n1 f1>n2", "f1 / .n1 ends / .n2"),
    "not reached": ("n1 n2 n3", "n1>n3", "n1 / n3 ends / n2"),
    "two beginnings that meet": ("n1 n2 n3", "n1>n3 n2>n3", "n1 / n2 / n3"),
    "a circle": ("n1 n2", "n1>n2 n2>n1", "n1 / n2 / back to n1"),
    "a step of itself": ("n1", "n1>n1", "n1 / back to n1"),
    "data alone": ("n1 n2", "n1~n2", "n1 ends / n2"),
    "edges to nowhere": ("n1", "n1>n2 n2>n1", "n1"),
}


@pytest.mark.parametrize(("nodes", "ways", "expected"), CASES.values(), ids=CASES)
def test_rows_are_nested_under_branches(nodes: str, ways: str, expected: str) -> None:
    assert " / ".join(map(said, outline(structure(nodes, ways)))) == expected


IDS = [f"{letter}{number}" for letter in "ndlfj" for number in range(1, 4)]
ENDINGS = ["", "", ":true", ":false", ":default", ":case:a", "*"]
WAYS = st.lists(
    st.tuples(st.sampled_from(IDS), st.sampled_from(IDS), st.sampled_from(ENDINGS)), max_size=30
)


@given(WAYS)
def test_any_structure_has_an_outline_that_names_each_node_once(
    ways: list[tuple[str, str, str]],
) -> None:
    drawn = structure(" ".join(IDS), " ".join(f"{start}>{end}{way}" for start, end, way in ways))
    rows = outline(drawn)
    assert sorted(row.node.id for row in rows if isinstance(row, NodeRow)) == sorted(IDS)
    depth = -1
    for row in rows:
        assert row.depth <= depth + 1
        depth = row.depth


def test_depth_has_no_bound() -> None:
    nodes = [f"d{number}" for number in range(2000)]
    ways = [f"{one}>{other}:true" for one, other in pairwise(nodes)]
    rows = outline(structure(" ".join(nodes), " ".join(ways)))
    assert max(row.depth for row in rows) == 2 * (len(nodes) - 1)
