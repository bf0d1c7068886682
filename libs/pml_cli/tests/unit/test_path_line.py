"""Rendering of an executed path."""

import pytest
from rich.text import Text

from pml_cli.render.path import path_line
from pml_common.contracts.trace import BranchDecision


def rendered(path: str, *decisions: tuple[str, str, int]) -> str:
    taken = [BranchDecision(node_id=n, outcome=o, times=times) for n, o, times in decisions]
    return Text.from_markup(path_line(path.split(), taken)).plain


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", "(no call)"),
        ("n1 d1 n2", "n1 → d1 false → n2"),
        ("l1 d1 n1 l1 d1 n2", "l1↻ → d1 false → n1 → l1↻ → d1 → n2"),
        ("dyn:fs:[red]read", "dyn:fs:[red]read"),
    ],
)
def test_a_path_is_a_line_with_loops_and_outcomes(path: str, line: str) -> None:
    assert rendered(path, ("d1", "false", 1)) == line


def test_outcomes_are_counted_where_there_are_several() -> None:
    decisions = (("d1", "true", 2), ("d1", "case:[x]", 1), ("d1", "true", 3))
    assert rendered("d1", *decisions) == "d1 true x5, case:[x]"
    assert rendered("d1", ("d1", "case:" + "x" * 99, 1)).endswith("xx…")


def test_a_long_path_is_cut() -> None:
    line = rendered(" ".join(f"n{i}" for i in range(100)))
    assert line.startswith("n0 → n1 → ")
    assert line.endswith(" → n39 → 60 more")
