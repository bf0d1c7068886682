"""The acceptor of reported paths: accepted paths, and others."""

import pytest

from pml_common.contracts.structure import StaticStructure
from services.analyzer.tests.paths import Step, TooManyWays, first_wrong_step

_TYPES = {"n": "task", "d": "decision", "l": "loop", "f": "fork", "j": "join"}


def _structure(text: str) -> StaticStructure:
    """Parse `n1>d1 d1>n2:true l1>n2:body f1=race f2=over l1=map d1=try`."""
    kinds = dict(word.split("=") for word in text.split() if "=" in word)
    edges = [word for word in text.split() if "=" not in word]
    ids = dict.fromkeys(end for edge in edges for end in edge.partition(":")[0].split(">"))
    return StaticStructure.model_validate(
        {
            "nodes": [_node(node_id, kinds.get(node_id, "")) for node_id in ids if node_id],
            "edges": [_edge(edge) for edge in edges if ">" in edge],
        }
    )


def _node(node_id: str, kind: str) -> dict[str, object]:
    node: dict[str, object] = {"id": node_id, "line": 1, "column": 1, "type": _TYPES[node_id[0]]}
    match node_id[0]:
        case "n":
            return {**node, "tool": "fs:read"}
        case "d":
            return {**node, "condition": kind or "a"}
        case "l":
            return {**node, "kind": kind or "while", "over": "a"}
        case "f":
            return {**node, **({"over": "a"} if kind == "over" else {"kind": kind or "all"})}
        case _:
            return node


def _edge(text: str) -> dict[str, str | None]:
    ends, _, outcome = text.partition(":")
    start, _, end = ends.partition(">")
    type_ = "loop_body" if outcome == "body" else "conditional" if outcome else "sequence"
    return {"from": start, "to": end, "type": type_, "outcome": outcome.replace("body", "") or None}


def _path(text: str) -> list[Step]:
    """Parse `n1 d1:true`."""
    steps = (word.partition(":") for word in text.split())
    return [(node_id, outcome or None) for node_id, _, outcome in steps]


SEQUENCE = "n1>d1 d1>n2:true d1>n3:false n2>n4 n3>n4"
LOOP = "n1>l1 l1>n2:body n2>d1 d1>n3:true d1>l1:false n3>l1 l1>n4"
ALL = "n1>f1 f1>n2 n2>n3 n3>j1 f1>n4 n4>j1 j1>n5"
TRY = f"{ALL} d1=try n1>d1 f1>d1 n2>d1 n3>d1 n4>d1 j1>d1 d1>n5:ok d1>n6:error n6>n7 n5>n7"
OVER = "n1>f1 f1>n2 n2>n3 n3>j1 f1>j1 j1>n4 f1=over"
NESTED = "f1>f2 f2>n1 n1>j2 f2>n2 n2>j2 j2>n3 n3>j1 f1>n4 n4>j1 j1>n5"
MAP = "n1>l1 l1=map l1>n2:body n2>n3 n3>l1 l1>n4"
RECURSION = "n1>l1 l1=recursion l1>n2:body n2>d1 d1>l1:true d1>n3:false n3>n3 n3>n4"
INNER_TRY = (
    "n1>f1 f1>n2 n2>n3 f1>d1 n2>d1 n3>d1 d1=try d1>j1:ok d1>n4:error n4>j1 f1>n5 n5>j1 j1>n6"
)
AROUND = (
    "n1>l1 l1=recursion l1>d1:body d1>f1:false f1>l2 l2=recursion l2>d2:body d2>l1:false"
    " d1>l2:true j1>l2 d2>n2:true n2>j1 d1>n3:true j1>n3"
)
TREE = "n1>l1 l1=recursion l1>n2:body n2>d1 d1>f1:true f1>l1 d1>n3:false n3>j1 j1>n3 n3>n4"

WAYS = {
    "nothing": (SEQUENCE, ""),
    "one branch": (SEQUENCE, "n1 d1:true n2 n4"),
    "the other": (SEQUENCE, "n1 d1:false n3 n4"),
    "as far as it got": (SEQUENCE, "n1 d1:false"),
    "no round": (LOOP, "n1 n4"),
    "two rounds": (LOOP, "n1 l1 n2 d1:true n3 l1 n2 d1:false n4"),
    "a loop at the very beginning": ("l1>n1:body n1>l1 l1>n2", "l1 n1 l1 n1 n2"),
    "a try that fails at once": (TRY, "n1 d1:error n6 n7"),
    "side by side": (ALL, "n1 n2 n4 n3 n5"),
    "side by side, the other way round": (ALL, "n1 n4 n2 n3 n5"),
    "an error in one of several": (TRY, "n1 n2 n4 d1:error n6 n7"),
    "what was begun goes on after an error": (TRY, "n1 n2 n4 d1:error n6 n3 n7"),
    "what was begun begins late": (TRY, "n1 n4 d1:error n6 n2 n7 n3"),
    "all is well": (TRY, "n1 n2 n4 n3 d1:ok n5 n7"),
    "no item": (OVER, "n1 n4"),
    "three items": (OVER, "n1 n2 n2 n2 n3 n3 n3 n4"),
    "items at different speeds": (OVER, "n1 n2 n2 n3 n2 n3 n3 n4"),
    "the others of a race go on": (f"{ALL} f1=race", "n1 n2 n4 n5 n3"),
    "the last of a race begins late": (f"{ALL} f1=any", "n1 n4 n5 n2 n3"),
    "what fails is settled": (f"{ALL} f1=allSettled", "n1 n2 n4 n5"),
    "forks in forks": (NESTED, "n1 n4 n2 n3 n5"),
    "a strand that catches its own error": (INNER_TRY, "n1 n2 n5 d1:error n4 n6"),
    "a strand that fails before its first call": (INNER_TRY, "n1 d1:error n5 n4 n6"),
    "what is never reached leads to it too": (f"{ALL} n9>f2 f2>n2", "n1 n2 n4 n3 n5"),
    "a strand that is optional": ("n1>f1 f1>n2 f1>j1 f1>n3 n2>j1 n3>j1 j1>n4", "n1 n3 n4"),
    "a strand that only looks": (
        "n1>f1 f1>l1 l1>n2:body n2>l1 l1>j1 f1>n3 n3>j1 j1>n4",
        "n1 n3 n4",
    ),
    "a race on the way to a join": (
        "f1>f2 f1=over f2=any f2>n1 n1>n2 n2>j2 j2>j1 f1>j1 j1>n3",
        "n1 n1 n2 n2 n3",
    ),
    "rounds in order": (MAP, "n1 l1 n2 n3 l1 n2 n3 n4"),
    "rounds that overlap": (MAP, "n1 l1 n2 l1 n2 n3 n4 n3"),
    "down and up again": (RECURSION, "n1 l1 n2 d1:true l1 n2 d1:false n3 n3 n4"),
    "functions that call each other side by side": (
        AROUND,
        "n1 l1 d1:false l2 d2:false l1 d1:true l2 d2:true n2 n3",
    ),
    "recursion side by side": (TREE, "n1 l1 n2 d1:true l1 n2 l1 n2 d1:false n3 d1:false n3 n3 n4"),
}


@pytest.mark.parametrize(("structure", "path"), WAYS.values(), ids=WAYS)
def test_a_way_is_taken_for_one(structure: str, path: str) -> None:
    assert first_wrong_step(_structure(structure), _path(path)) is None


WRONG = {
    "a step is left out": (SEQUENCE, "n1 d1:true n4", "n4"),
    "it begins in the middle": (SEQUENCE, "d1:true", "d1:true"),
    "the other branch": (SEQUENCE, "n1 d1:true n3", "n3"),
    "an outcome that leads nowhere": (SEQUENCE, "n1 d1:maybe n2", "n2"),
    "what is never reached": (f"{SEQUENCE} n8>n4", "n8", "n8"),
    "a node that is not there": (SEQUENCE, "n1 n9", "n9"),
    "a fork is not reported": (ALL, "n1 f1", "f1"),
    "twice": (SEQUENCE, "n1 d1:true n2 n2", "n2"),
    "a round that was not reported": (LOOP, "n1 l1 n2 d1:false n2", "n2"),
    "a last look that was reported": (LOOP, "n1 l1 n4", "n4"),
    "one strand is missing": (ALL, "n1 n2 n3 n5", "n5"),
    "one strand is not at its end": (ALL, "n1 n2 n4 n5", "n5"),
    "a strand backwards": (ALL, "n1 n4 n3", "n3"),
    "a strand twice": (ALL, "n1 n4 n4", "n4"),
    "on after the join": (ALL, "n1 n2 n4 n3 n5 n3", "n3"),
    "an error that was none": (TRY, "n1 n2 n4 n3 d1:ok n6", "n6"),
    "all is well too early": (TRY, "n1 n2 n4 n5", "n5"),
    "an item on its way": (OVER, "n1 n2 n2 n3 n4", "n4"),
    "the others of a race outside": (f"{ALL} f1=race", "n1 n2 n4 n5 n3 n5", "n5"),
    "nobody won the race": (f"{ALL} f1=race", "n1 n2 n5", "n5"),
    "settled ones go on": (f"{ALL} f1=allSettled", "n1 n2 n4 n5 n3", "n3"),
    "an inner join too early": (NESTED, "n1 n3", "n3"),
    "an outer join too early": (NESTED, "n1 n4 n2 n5", "n5"),
    "a race on the way to a join that nobody won": (
        "f1>f2 f1=over f2=any f2>n1 n1>n2 n2>j2 j2>j1 f1>j1 j1>n3",
        "n1 n1 n2 n3",
        "n3",
    ),
    "more than one round from one": (MAP, "n1 l1 n2 n2", "n2"),
    "a round's end without its beginning": (MAP, "n1 l1 n2 n3 n3", "n3"),
    "up without having been down": (RECURSION, "n1 l1 n2 d1:true n3", "n3"),
}


@pytest.mark.parametrize(("structure", "path", "step"), WRONG.values(), ids=WRONG)
def test_what_is_no_way_is_refused_at_the_step_that_is_wrong(
    structure: str, path: str, step: str
) -> None:
    steps = _path(path)
    wrong = first_wrong_step(_structure(structure), steps)
    assert wrong is not None
    assert path.split()[wrong] == step
    assert wrong == len(steps) - 1


def test_a_path_that_can_be_read_in_too_many_ways_is_said_to_be_one() -> None:
    strands = [f"n{number}" for number in range(1, 15)]
    edges = " ".join(f"f1>{strand} {strand}>n99" for strand in strands)
    with pytest.raises(TooManyWays):
        first_wrong_step(_structure(f"{edges} n99>j1"), _path(" ".join([*strands, *["n99"] * 7])))
