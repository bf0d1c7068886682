"""Runs as DAGs, from the times and values of their calls."""

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pml_common.contracts.error import WorkflowError
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    DecisionNode,
    LiteralArgument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
    StaticStructure,
    TaskNode,
)
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import TaskResult
from pml_gateway.domain.sources.dag_source import Dag, layers_of, program_of_dag
from pml_gateway.domain.sources.dag_trace import DagView, view_of
from services.gateway.tests.support.builders import made, workflow

WORKFLOW = workflow().workflow_id


def call(
    node_id: str,
    start: float,
    end: float,
    args: JsonObject | None = None,
    result: JsonValue = None,
) -> TaskResult:
    updated = {"duration_ms": end - start, "args": args or {}}
    return made(node_id=node_id, started_at=start, result=result).model_copy(update=updated)


def drawn(
    calls: Sequence[TaskResult],
    arguments: Mapping[str, dict[str, Argument]] | None = None,
    args: JsonObject | None = None,
) -> DagView:
    nodes = [
        TaskNode(id=id_, line=1, column=1, tool="fs:read", arguments=given)
        for id_, given in (arguments or {}).items()
    ]
    decision = DecisionNode(id="d1", line=1, column=1, condition="x")
    structure = StaticStructure(nodes=(decision, *nodes)) if arguments is not None else None
    return view_of(WORKFLOW, calls, structure, args or {})


def whole(view: DagView) -> Dag:
    assert view.dag is not None
    return view.dag


def test_calls_that_overlap_are_parallel_and_others_wait() -> None:
    calls = [call("n4", 9, 10), call("n1", 0, 1), call("n2", 2, 5), call("n3", 3, 6)]
    dag = whole(drawn(calls))
    assert [(each.id, each.depends_on) for each in dag.tasks] == [
        ("n1.0", ()),
        ("n2.0", ("n1.0",)),
        ("n3.0", ("n1.0",)),
        ("n4.0", ("n2.0", "n3.0")),
    ]
    assert [len(layer) for layer in layers_of(dag)] == [1, 2, 1]


def test_what_was_handed_on_becomes_a_reference_and_the_rest_stays_a_value() -> None:
    output: JsonValue = {"rows": [{"id": 7}], "one": 1}
    calls = [
        call("n1", 0, 1, {"path": "/a", "text": "$OUTPUT[n9]"}, output),
        call(
            "n2",
            2,
            3,
            {
                "id": 7,
                "whole": output,
                "true": True,
                "other": 8,
                "gone": 1,
                "list": [7, "x"],
                "short": [7],
                "object": {"id": 7, "more": 2},
                "path": "/a",
                "odd": "/a",
                "dynamic": 7,
            },
        ),
    ]
    from_rows = ReferenceArgument(expression="r.rows[0].id", node_id="n1")
    arguments: dict[str, dict[str, Argument]] = {
        "n1": {"path": ParameterArgument(parameter_name="path")},
        "n2": {
            "id": from_rows,
            "whole": ReferenceArgument(expression="r", node_id="n1"),
            "true": ReferenceArgument(expression="r.one", node_id="n1"),
            "other": from_rows,
            "gone": ReferenceArgument(expression="r.gone", node_id="n1"),
            "list": ArrayArgument(items=(from_rows, LiteralArgument(value="x"))),
            "short": ArrayArgument(items=(from_rows, from_rows)),
            "object": ObjectArgument(fields={"id": from_rows}),
            "path": ParameterArgument(parameter_name="absent"),
            "odd": ParameterArgument(parameter_name="o[d]d"),
            "dynamic": ReferenceArgument(expression="f(r)", node_id="n1"),
        },
    }
    view = drawn(calls, arguments, {"path": "/a", "o[d]d": "/a"})
    first, second = whole(view).tasks
    assert first.arguments == {"path": "$INPUT[path]", "text": "$$OUTPUT[n9]"}
    assert second.arguments == {
        "id": "$OUTPUT[n1.0].rows[0].id",
        "whole": "$OUTPUT[n1.0]",
        "true": True,
        "other": 8,
        "gone": 1,
        "list": ["$OUTPUT[n1.0].rows[0].id", "x"],
        "short": [7],
        "object": {"id": "$OUTPUT[n1.0].rows[0].id", "more": 2},
        "path": "/a",
        "odd": "/a",
        "dynamic": 7,
    }
    assert "t1.rows[0].id" in program_of_dag(whole(view))


def test_a_value_of_a_call_that_had_not_ended_is_no_reference() -> None:
    taken: dict[str, dict[str, Argument]] = {
        "n1": {},
        "n2": {"x": ReferenceArgument(expression="r", node_id="n1")},
    }
    calls = [call("n1", 0, 5, result="v"), call("n2", 1, 2, {"x": "v"})]
    assert whole(drawn(calls, taken)).tasks[1].arguments == {"x": "v"}


def test_calls_that_failed_are_left_out_and_told() -> None:
    failed = made(node_id="n2", started_at=5, error=WorkflowError(kind="tool_error", message="x"))
    view = drawn([call("n1", 0, 1), failed])
    assert [each.id for each in whole(view).tasks] == ["n1.0"]
    assert view.left_out == ("n2.0",)
    assert drawn([failed]).dag is None


def test_a_node_whose_id_names_no_task_gets_a_number() -> None:
    (only,) = whole(drawn([call("dyn:a:b c", 0, 1)])).tasks
    assert only.id == "task1"


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=9))
def test_a_task_waits_directly_or_not_for_all_that_had_ended(spans: list[tuple[int, int]]) -> None:
    spans = sorted(spans, key=lambda span: span[0])
    calls = [call(f"n{n}", start, start + took) for n, (start, took) in enumerate(spans)]
    tasks = whole(drawn(calls)).tasks
    waits: dict[str, set[str]] = {}
    for task in tasks:
        waits[task.id] = {one for near in task.depends_on for one in (near, *waits[near])}
    for later, (start, _) in enumerate(spans):
        ended = {f"n{n}.0" for n, (at, took) in enumerate(spans[:later]) if at + took <= start}
        assert waits[f"n{later}.0"] == ended
