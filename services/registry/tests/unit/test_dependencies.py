"""Admission of dependencies, and the relations that follow from tools and intents."""

from collections.abc import Sequence
from itertools import pairwise
from uuid import UUID, uuid5

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.dependencies import DependencyType, EdgeSource
from pml_registry.domain.dependencies import (
    MOST_RELATED,
    CyclicTemplate,
    Need,
    NewDependency,
    Peer,
    admit_dependency,
    alternatives,
    cycle_closed,
    direct_calls,
    may_be_alternative,
    sharing,
    shown_cycle,
)
from services.registry.tests.support.builders import NOON, analysed
from services.registry.tests.support.dependencies import calling, code

SPACE = UUID(int=0)
A, B, C, D = (uuid5(SPACE, letter) for letter in "abcd")


def _needs(*pairs: tuple[UUID, UUID], source: EdgeSource = "template") -> Sequence[Need]:
    return [Need(one, other, source) for one, other in pairs]


def _new(type_: DependencyType = "dependency", source: EdgeSource = "template") -> NewDependency:
    return NewDependency(C, A, type_, source)


def test_a_template_that_closes_a_cycle_of_templates_is_refused_with_the_cycle() -> None:
    with pytest.raises(CyclicTemplate) as refused:
        admit_dependency(_new(), _needs((A, B), (B, C), (A, D)))
    assert list(refused.value.cycle) == [C, A, B, C]


def test_a_template_that_closes_a_cycle_with_what_was_observed_is_warned_of() -> None:
    needs = [*_needs((A, B)), *_needs((B, C), source="observed")]
    assert list(admit_dependency(_new(), needs)) == [C, A, B, C]


def test_an_observed_cycle_is_warned_of() -> None:
    new = _new("contains", "observed")
    assert list(admit_dependency(new, _needs((A, B), (B, C)))) == [C, A, B, C]


@pytest.mark.parametrize("type_", ["sequence", "alternative"])
def test_other_types_may_form_cycles(type_: DependencyType) -> None:
    assert admit_dependency(_new(type_), _needs((A, B), (B, C))) == ()


def test_no_cycle_is_nothing_to_warn_of() -> None:
    assert admit_dependency(_new(), _needs((A, B), (C, B))) == ()


def test_the_shortest_of_cycles_is_found() -> None:
    needs = _needs((B, C), (C, B), (C, D), (D, A), (C, A))
    assert cycle_closed(A, B, needs) == [A, B, C, A]


@given(st.lists(st.tuples(st.sampled_from([A, B, C, D]), st.sampled_from([A, B, C, D]))))
def test_a_cycle_is_found_exactly_where_a_path_leads_back(pairs: list[tuple[UUID, UUID]]) -> None:
    graph = nx.DiGraph(pairs)
    graph.add_nodes_from([A, B])
    found = cycle_closed(A, B, _needs(*pairs))
    assert bool(found) == nx.has_path(graph, B, A)
    if found:
        assert (found[0], found[1], found[-1]) == (A, B, A)
        assert len(found) == nx.dijkstra_path_length(graph, B, A) + 2
        assert all(graph.has_edge(one, two) for one, two in pairwise(found[1:]))


def test_a_cycle_is_shown_by_names_and_ids() -> None:
    assert shown_cycle([A, B, A], {A: "fs:a"}) == f"fs:a → {B} → fs:a"


def test_what_is_stated_to_be_observed_counts_as_three_runs() -> None:
    observed, template = (_new(source=each).shown_by(NOON) for each in ("observed", "template"))
    assert (observed.source, observed.count, observed.confidence(NOON)) == ("observed", 3, 0.75)
    assert (template.source, template.count, template.confidence(NOON)) == ("template", 0, 0.5)
    assert (template.base, observed.base) == ("template", "inferred")


def test_each_called_capability_is_called_once() -> None:
    program = calling(analysed(code("a")), {"b": "ci:build", "c": "ci:test"})
    twice = program.structure.model_copy(update={"nodes": program.structure.nodes * 2})
    unknown = [
        node.model_copy(update={"capability_id": None}) if node.type == "capability" else node
        for node in program.structure.nodes
    ]
    assert len(direct_calls(twice)) == 2
    assert direct_calls(twice.model_copy(update={"nodes": tuple(unknown)})) == ()


def _peer(id_: UUID, *tools: str, intent: str = "read") -> Peer:
    return Peer(id_, intent, frozenset(tools))


def test_half_of_anothers_tools_are_shared() -> None:
    one = _peer(A, "a:a", "b:b")
    others = [_peer(B, "a:a", "c:c"), _peer(C, "a:a", "b:b"), _peer(D, "a:a", "c:c", "d:d")]
    found = [(each.to, each.type, each.confidence) for each in sharing(one, [*others, _peer(A)])]
    assert found == [(C, "sequence", 1.0), (B, "sequence", 0.5)]


def test_a_capability_has_so_many_relations_by_a_rule() -> None:
    others = [_peer(uuid5(SPACE, str(n)), "a:a") for n in range(MOST_RELATED + 1)]
    assert len(sharing(_peer(A, "a:a"), others)) == MOST_RELATED


def test_alike_intents_are_alternatives() -> None:
    found = alternatives([(_peer(B), 0.9), (_peer(C), 0.91), (_peer(D), 1.0000001)])
    assert [(each.to, each.confidence) for each in found] == [(D, 1.0), (C, 0.91)]


@pytest.mark.parametrize(
    ("other", "may"),
    [
        (_peer(B, "b:b"), True),
        (_peer(B, "a:a", "b:b"), True),
        (_peer(B, "a:a"), False),
        (_peer(A, "b:b"), False),
        (_peer(B, "b:b", intent=""), False),
    ],
)
def test_an_alternative_has_other_tools_and_an_intent(other: Peer, may: bool) -> None:
    assert may_be_alternative(_peer(A, "a:a"), other) is may
