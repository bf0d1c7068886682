"""Rendering of an executed path in a line of rich markup."""

from collections import Counter
from collections.abc import Iterable, Sequence

from pml_cli.markup import escape
from pml_cli.render.values import short
from pml_common.contracts.trace import BranchDecision

_MOST = 40
_LOOP = "[yellow]↻[/]"


def path_line(path: Sequence[str], decisions: Iterable[BranchDecision] = ()) -> str:
    """Node ids, with `↻` where a loop's round begins and a decision's outcomes at its first
    node."""
    outcomes = _by_node(decisions)
    words: list[str] = []
    for node in path[:_MOST]:
        taken = outcomes.pop(node, None)
        word = escape(node) + (_LOOP if node.startswith("l") else "")
        words.append(word if taken is None else f"{word} [cyan]{_counted(taken)}[/]")
    if len(path) > _MOST:
        words.append(f"[dim]{len(path) - _MOST} more[/]")
    return " → ".join(words) or "(no call)"


def _by_node(decisions: Iterable[BranchDecision]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for decision in decisions:
        counts.setdefault(decision.node_id, Counter())[decision.outcome] += decision.times
    return counts


def _counted(outcomes: Counter[str]) -> str:
    """`true`, or `true x3, false` for a decision taken more than once."""
    return ", ".join(
        escape(short(outcome, 30)) + (f" x{times}" if times > 1 else "")
        for outcome, times in outcomes.items()
    )
