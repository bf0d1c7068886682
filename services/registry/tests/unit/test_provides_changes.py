"""Provides edges of a catalog after changes, compared with those of the whole catalog."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.structure import Coverage
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.provides.tool_edges import create_provides_edges
from pml_registry.domain import provides
from pml_registry.domain.provides import MOST_CONSUMERS, Ends, ProvidesChange, provides_change

FIELDS = st.frozensets(st.sampled_from(["path", "url", "branch"]), max_size=2)


def _schema(fields: frozenset[str]) -> JsonObject:
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in sorted(fields)},
        "required": [*sorted(fields)],
    }


def _tool(number: int, takes: frozenset[str], gives: frozenset[str]) -> ToolDefinition:
    return ToolDefinition(
        server=f"s{number % 2}",
        name=f"t{number:03}",
        input_schema=_schema(takes),
        output_schema=_schema(gives) if gives else None,
    )


def _catalog(*shapes: tuple[frozenset[str], frozenset[str]]) -> list[ToolDefinition]:
    tools = [_tool(number, *shape) for number, shape in enumerate(shapes)]
    return sorted(tools, key=lambda tool: tool.tool_id)


def _after(stored: Mapping[Ends, Coverage], change: ProvidesChange) -> dict[Ends, Coverage]:
    after: dict[Ends, Coverage] = {
        ends: rank for ends, rank in stored.items() if ends not in change.removed
    }
    after.update(((edge.from_, edge.to), edge.coverage) for edge in change.saved)
    return after


def _all(tools: Sequence[ToolDefinition]) -> dict[Ends, Coverage]:
    return {(edge.from_, edge.to): edge.coverage for edge in create_provides_edges(tools)}


SHAPES = st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=8)


@given(SHAPES, SHAPES)
def test_after_each_change_the_edges_are_those_of_the_whole_catalog(
    before: list[tuple[frozenset[str], frozenset[str]]],
    after: list[tuple[frozenset[str], frozenset[str]]],
) -> None:
    old = _catalog(*before)
    first = provides_change(old, [tool.tool_id for tool in old], {})
    stored = _after({}, first)
    assert stored == _all(old)
    assert first.visible == bool(stored)
    new = _catalog(*after)
    known = {tool.tool_id: tool for tool in old}
    stale = [tool.tool_id for tool in new if known.get(tool.tool_id) != tool]
    change = provides_change(new, stale, stored)
    assert change.done == tuple(stale)
    assert _after(stored, change) == _all(new)


def test_of_a_tool_that_feeds_many_the_best_edges_are_kept() -> None:
    path, both = frozenset({"path"}), frozenset({"path", "url"})
    few, many = [(path, frozenset[str]())] * 10, [(both, frozenset[str]())] * MOST_CONSUMERS
    tools = _catalog((frozenset(), path), *many, *few)
    stale = [tool.tool_id for tool in tools]
    stored: dict[Ends, Coverage] = {}
    while stale:
        change = provides_change(tools, stale, stored)
        stored, stale = _after(stored, change), [each for each in stale if each not in change.done]
    assert len(stored) == MOST_CONSUMERS
    assert sum(coverage == "strict" for coverage in stored.values()) == 10
    partial = [ends for ends, coverage in stored.items() if coverage == "partial"]
    assert sum(ends[1].startswith("s0:") for ends in partial) == MOST_CONSUMERS / 2


def test_another_takes_the_place_of_an_edge_that_is_lost() -> None:
    path = frozenset({"path"})
    tools = _catalog((frozenset(), path), *[(path, frozenset[str]())] * (MOST_CONSUMERS + 5))
    change = provides_change(tools, [tool.tool_id for tool in tools], {})
    assert change.visible
    stored = _after({}, change)
    assert not provides_change(tools, [], stored).visible
    assert len(stored) == MOST_CONSUMERS
    gone = {consumer for _, consumer in list(stored)[:3]}
    rest = [tool for tool in tools if tool.tool_id not in gone]
    after = _after(stored, provides_change(rest, [], stored))
    assert len(after) == MOST_CONSUMERS
    assert not gone & {consumer for _, consumer in after}


def test_so_many_tools_are_compared_at_once_and_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provides, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(provides, "MOST_TOOLS", 4)
    path = frozenset({"path"})
    tools = _catalog(*[(path, path)] * 6)
    everyone = [tool.tool_id for tool in tools]
    change = provides_change(tools, everyone, {})
    assert (change.done, change.left_out) == (tuple(everyone[:2]), 2)
    assert {end for edge in change.saved for end in (edge.from_, edge.to)} == {*everyone[:4]}
