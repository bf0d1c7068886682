"""The invocations of a capability as a graph."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.learner import ExecutionTrace, TracePage
from pml_gateway.domain.capability_views.definition import definition_of
from pml_gateway.domain.capability_views.elements import InvocationNodeData, InvocationsView
from pml_gateway.domain.capability_views.invocation import callers_of, invocations_of
from services.gateway.tests.support.drawn import NAME, NESTED, called, drawn, node, trace

RECORD = drawn([node("n1", "fs:read")])
OWN = RECORD.capability_id

TIMES = st.lists(
    st.tuples(st.sampled_from(["a:x", "b:y", "c"]), st.integers(0, 20), st.integers(0, 9)),
    max_size=10,
)


def _view(
    *runs: ExecutionTrace,
    inside: Sequence[ExecutionTrace] = (),
    limit: int = 999,
    most: int = 999,
    complete: bool = True,
) -> InvocationsView:
    page = TracePage(traces=runs, total=len(runs))
    nested = callers_of(runs, [*inside, *runs])
    return invocations_of(RECORD, page, nested, limit, most, complete=complete)


def _nodes(view: InvocationsView) -> dict[str, InvocationNodeData]:
    return {each.data.id: each.data for each in view.elements.nodes}


def _sequences(view: InvocationsView) -> set[tuple[str, str]]:
    return {(each.data.source, each.data.target) for each in view.elements.edges}


def test_ac6_three_runs_are_one_node_in_definition_and_three_in_invocation() -> None:
    runs = [trace(OWN, at, at + 5, called("fs:read", at + 1, at + 2)) for at in (30, 10, 20)]
    definition = definition_of(RECORD, (), 9, 9)
    labels = [each.data.label for each in definition.elements.nodes]
    assert labels == [NAME, "fs:read"]
    view = _view(*runs)
    found = {each.id: (each.parent, each.started_at) for each in _nodes(view).values()}
    assert found == {
        f"{NAME}_1": (None, 10),
        "fs:read_1": (f"{NAME}_1", 11),
        f"{NAME}_2": (None, 20),
        "fs:read_2": (f"{NAME}_2", 21),
        f"{NAME}_3": (None, 30),
        "fs:read_3": (f"{NAME}_3", 31),
    }
    assert _sequences(view) == set(), "runs are in no sequence"
    assert (view.runs, view.total, view.complete) == (3, 3, True)
    assert [each.sequence for each in _nodes(view).values() if each.parent is None] == [1, 2, 3]


def test_ac7_parallel_calls_overlap_in_time_and_are_in_no_sequence() -> None:
    run = trace(
        OWN,
        0,
        20,
        called("fs:list", 1, 2),
        called("fs:read", 3, 9),
        called("http:get", 4, 6, error="away"),
        called("json:parse", 10, 12),
    )
    view = _view(run)
    nodes = _nodes(view)
    assert {each.id: each.parallel for each in nodes.values() if each.parent} == {
        "fs:list_1": False,
        "fs:read_1": True,
        "http:get_1": True,
        "json:parse_1": False,
    }
    assert nodes["http:get_1"].started_at < nodes["fs:read_1"].ended_at
    assert _sequences(view) == {
        ("fs:list_1", "fs:read_1"),
        ("fs:list_1", "http:get_1"),
        ("fs:read_1", "json:parse_1"),
        ("http:get_1", "json:parse_1"),
    }
    assert {each.data.id: each.data.gap_ms for each in view.elements.edges} == {
        "fs:list_1>fs:read_1": 1,
        "fs:list_1>http:get_1": 2,
        "fs:read_1>json:parse_1": 1,
        "http:get_1>json:parse_1": 4,
    }
    assert [each.classes for each in view.elements.nodes] == [
        "capability success run",
        "tool success",
        "tool success parallel",
        "tool failure parallel",
        "tool success",
    ]
    assert nodes["http:get_1"].error_kind == "tool_error"


def test_nested_capabilities_are_parents_of_what_they_call() -> None:
    run = trace(OWN, 0, 20, called("fs:list", 1, 2))
    outer = trace(NESTED, 3, 9, called("fs:read", 4, 5), parent=run, name="fs:tidy")
    inner = trace(NESTED, 6, 8, called("fs:read", 7, 8), parent=outer, name="fs:tidy")
    stray = trace(NESTED, 6, 8, called("fs:read", 7, 8))
    view = _view(run, inside=[inner, outer, stray])
    assert {each.id: each.parent for each in _nodes(view).values()} == {
        f"{NAME}_1": None,
        "fs:list_1": f"{NAME}_1",
        "fs:tidy_1": f"{NAME}_1",
        "fs:read_1": "fs:tidy_1",
        "fs:tidy_2": "fs:tidy_1",
        "fs:read_2": "fs:tidy_2",
    }
    assert _sequences(view) == {("fs:list_1", "fs:tidy_1"), ("fs:read_1", "fs:tidy_2")}
    tidy = _nodes(view)["fs:tidy_1"]
    assert (tidy.kind, tidy.capability_id, tidy.node_id) == ("capability", NESTED, "n2")
    assert (tidy.trace_id, tidy.workflow_id) == (outer.trace_id, run.workflow_id)


def test_a_capability_without_a_name_is_shown_by_its_id() -> None:
    run = trace(OWN, 0, 20)
    view = _view(run, inside=[trace(NESTED, 3, 9, parent=run)])
    assert list(_nodes(view)) == [f"{NAME}_1", f"{NESTED}_1"]


def test_arguments_and_results_are_not_in_the_view() -> None:
    text = _view(trace(OWN, 0, 20, called("fs:list", 1, 2, error="secret"))).model_dump_json()
    assert "secret" not in text
    assert "private" not in text


def test_a_dry_run_and_its_mocked_calls_are_marked() -> None:
    mocked = called("fs:write", 1, 2).model_copy(update={"mocked": True})
    run = trace(OWN, 0, 20, mocked).model_copy(update={"dry_run": True})
    (own, call) = _view(run).elements.nodes
    assert (own.data.dry_run, call.data.mocked) == (True, True)
    assert call.classes == "tool success mocked"


def test_a_view_is_cut_at_its_limits_and_says_so() -> None:
    run = trace(OWN, 0, 99, *(called(f"fs:t{at}", 2 * at, 2 * at + 1) for at in range(5)))
    later = trace(OWN, 100, 199, called("fs:last", 101, 102))
    inside = [trace(NESTED, 50, 60, parent=run, name="fs:tidy")]
    whole = _view(run, later, inside=inside)
    assert (len(whole.elements.nodes), len(whole.elements.edges)) == (9, 5)
    assert whole.complete
    for limit, most in ((9, 4), (8, 5), (3, 5), (1, 0)):
        view = _view(run, later, inside=inside, limit=limit, most=most)
        assert len(view.elements.nodes) == limit
        assert len(view.elements.edges) <= most
        assert not view.complete
        ids = set(_nodes(view))
        assert all(set(ends) <= ids for ends in _sequences(view))
    assert not _view(run, complete=False).complete


@given(st.lists(TIMES, max_size=4))
def test_every_call_is_one_node_and_overlapping_calls_are_in_no_sequence(
    runs: list[list[tuple[str, int, int]]],
) -> None:
    made: list[ExecutionTrace] = []
    inside: list[ExecutionTrace] = []
    for at, times in enumerate(runs):
        calls = [called(name, s, s + length) for name, s, length in times if ":" in name]
        run = trace(OWN, at, at + 50, *calls)
        made.append(run)
        inside += [
            trace(NESTED, s, s + length, called("d:z", s, s), parent=run, name="c")
            for name, s, length in times
            if ":" not in name
        ]
    view = _view(*made, inside=inside)
    every = [*made, *inside]
    expected = Counter(
        [each.trace_id for each in every]
        + [call.trace_id for each in every for call in each.task_results]
    )
    nodes = _nodes(view)
    assert Counter(each.trace_id for each in nodes.values()) == expected
    assert len(nodes) == len(view.elements.nodes)
    for one, other in _sequences(view):
        assert nodes[one].parent == nodes[other].parent is not None
        assert nodes[one].ended_at <= nodes[other].started_at
        assert nodes[one].sequence < nodes[other].sequence
    siblings: dict[str | None, list[InvocationNodeData]] = {}
    for each in nodes.values():
        siblings.setdefault(each.parent, []).append(each)
        assert each.id.rpartition("_")[0] in (NAME, "a:x", "b:y", "c", "d:z")
    for parent, group in siblings.items():
        assert [each.sequence for each in group] == list(range(1, len(group) + 1))
        for each in group if parent is not None else ():
            overlapping = any(
                other is not each
                and (
                    other.started_at == each.started_at
                    or (other.started_at < each.ended_at and each.started_at < other.ended_at)
                )
                for other in group
            )
            assert each.parallel == overlapping
