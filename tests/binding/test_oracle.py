"""The oracle: calls that it accepts as shown, and calls that it reports."""

from collections.abc import Sequence

import pytest

from tests.binding.attacks import attacks
from tests.binding.expected import Json, same
from tests.binding.oracle import Arrived, Asked, Oracle
from tests.binding.shown import shown_calls

ARGS = {"path": "/a", "list": ["/1", "/2"], "o": {"path": "/o"}, "none": None}


def literal(value: Json) -> Json:
    return {"type": "literal", "value": value}


def parameter(*path: str | int | None, **more: Json) -> Json:
    return {"type": "parameter", "parameter_name": "p", "path": list(path), **more}


def result(node: str, *path: str | int | None) -> Json:
    return {"type": "reference", "expression": "r", "node_id": node, "path": list(path)}


def computed(**more: Json) -> Json:
    return {"type": "reference", "expression": "f()", "node_id": None, **more}


def task(number: int, tool: str, *, repeats: bool = False, **arguments: Json) -> Json:
    return {
        "type": "task",
        "id": f"n{number}",
        "tool": f"t:{tool}",
        "arguments": arguments,
        "repeats": repeats,
    }


def call(tool: str, result: Json = None, **args: Json) -> Arrived:
    return Arrived(f"t:{tool}", args, result)


def holes(
    nodes: Sequence[Json],
    *arrived: Arrived,
    asked: Sequence[Asked] = (),
    capabilities: Sequence[Json] = (),
) -> int:
    """Number of writes that were neither shown nor approved."""
    shown: Json = {
        "structure": {"nodes": nodes},
        "analysis": {"capabilities": capabilities},
        "args": ARGS,
    }
    judged = [number for number, one in enumerate(arrived) if one.tool == "t:write"]
    verdict = Oracle(shown_calls(shown), asked, arrived).verdict(judged)
    assert verdict.bound + verdict.computed + verdict.asked + len(verdict.holes) == len(judged)
    return len(verdict.holes)


@pytest.mark.parametrize(
    ("shown", "given", "fits"),
    [
        (literal("/a"), "/a", True),
        (literal("/a"), "/b", False),
        (literal(1), 1.0, True),
        (literal(1), True, False),
        (literal({"a": [1]}), {"a": [1]}, True),
        (literal({"a": [1]}), {"a": [1], "b": 2}, False),
        (parameter("path"), "/a", True),
        (parameter("path"), "/b", False),
        (parameter("list", None), "/2", True),
        (parameter("list", 0), "/2", False),
        (parameter("x", default=[7]), 7, True),
        (parameter("path", default=[7]), "/a", True),
        (parameter("path", default=["/d"]), "/x", False),
        (computed(), "anything", True),
        ({"type": "parameter", "parameter_name": "p"}, "anything", True),
        ({"type": "object", "fields": {"a": computed(), "b": literal(1)}}, {"a": 5, "b": 1}, True),
        ({"type": "object", "fields": {"a": computed(), "b": literal(1)}}, {"a": 5, "b": 2}, False),
        ({"type": "array", "items": [computed(), literal(1)]}, [5, 1], True),
        ({"type": "array", "items": [computed(), literal(1)]}, [5, 1, 2], False),
    ],
)
def test_an_argument_is_compared_with_what_was_shown(shown: Json, given: Json, fits: bool) -> None:
    assert holes([task(1, "write", path=shown)], call("write", path=given)) == (not fits)


def test_no_key_is_surplus_or_left_out() -> None:
    nodes = [task(1, "write", path=literal("/a"), content=computed())]
    assert holes(nodes, call("write", path="/a", content=1)) == 0
    assert holes(nodes, call("write", path="/a")) == 0
    assert holes(nodes, call("write", content=1)) == 1
    assert holes(nodes, call("write", path="/a", mode=1)) == 1


def test_a_spread_sets_its_keys() -> None:
    nodes = [task(1, "write", path=literal("/a"), **{"...x": computed(keys=["content"])})]
    assert holes(nodes, call("write", path="/a", content=1)) == 0
    assert holes(nodes, call("write", path="/a", mode=1)) == 1
    whole = [task(1, "write", **{"...args.o": parameter("o")})]
    assert holes(whole, call("write", path="/o")) == 0
    assert holes(whole, call("write", path="/evil")) == 1


def test_a_reference_is_a_part_of_an_earlier_result_of_its_node() -> None:
    nodes = [
        task(1, "read", path=literal("/a")),
        task(2, "write", path=result("n1", "files", None, "path")),
    ]
    read = call("read", {"files": [{"path": "/f"}, {"path": "/g"}]}, path="/a")
    other = call("read", {"files": [{"path": "/evil"}]}, path="/other")
    assert holes(nodes, read, call("write", path="/g")) == 0
    assert holes(nodes, call("write", path="/g"), read) == 1
    assert holes(nodes, read, other, call("write", path="/evil")) == 1


def test_a_call_is_granted_once_unless_it_repeats() -> None:
    twice = [call("write", path="/a")] * 2
    assert holes([task(1, "write", path=literal("/a"))], *twice) == 1
    assert holes([task(1, "write", path=literal("/a"), repeats=True)], *twice) == 0
    assert holes([task(1, "write", path=literal("/a"))], *twice, asked=[Asked("t:write", {})]) == 1
    asked = [Asked("t:write", {"path": "/a"})]
    assert holes([task(1, "write", path=literal("/a"))], *twice, asked=asked) == 0


def test_covers_are_found_whichever_call_comes_first() -> None:
    nodes = [task(1, "write", path=literal("/a")), task(2, "write", path=computed())]
    calls = [call("write", path="/a"), call("write", path="/b")]
    assert holes(nodes, *calls) == 0
    assert holes(nodes, *calls[::-1]) == 0
    assert holes(nodes, *calls, call("write", path="/c")) == 1


def test_parameters_lead_through_capabilities() -> None:
    inner = task(1, "write", path=parameter("to"), content=literal("c"))
    capability: Json = {"capability_id": "c", "nodes": [inner]}
    calling: Json = {"type": "capability", "id": "n1", "capability_id": "c", "repeats": False}
    for given, path, expected in (
        (literal("/x"), "/x", 0),
        (literal("/x"), "/y", 1),
        (parameter("path"), "/a", 0),
        (parameter("path"), "/b", 1),
        (computed(), "/y", 0),
    ):
        nodes = [{**calling, "arguments": {"to": given}}]
        arrived = call("write", path=path, content="c")
        assert holes(nodes, arrived, capabilities=[capability]) == expected


def test_a_key_that_begins_like_a_spread_is_told_apart() -> None:
    nodes = [task(1, "write", path=literal("/a"), **{"...x": literal(1)})]
    assert holes(nodes, call("write", path="/a", **{"...x": 1})) == 0
    assert holes(nodes, call("write", path="/a", x=1)) == 1


def test_values_of_different_kinds_are_not_the_same() -> None:
    values: list[Json] = [None, True, False, 0, 1, "", "0", [], {}, [None], {"a": None}]
    for number, one in enumerate(values):
        for other_number, other in enumerate(values):
            assert same(one, other) == (number == other_number)


def test_there_are_many_programs_and_no_two_of_one_name() -> None:
    every = attacks()
    names = [one.name for one in every]
    assert len(set(names)) == len(names)
    assert sum(one.honest is None for one in every) >= 150
