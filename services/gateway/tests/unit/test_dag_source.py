"""DAGs of calls and single tools as programs, and the errors of invalid ones."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.sources.dag_source import (
    MOST_TASKS,
    Dag,
    DagTask,
    ToolSource,
    layers_of,
    program_of_dag,
    program_of_tool,
)
from pml_gateway.domain.sources.dag_values import Reference, at, expression, path_of, read, text_of


def task(id_: str, *after: str, **arguments: JsonValue) -> DagTask:
    return DagTask(id=id_, tool="fs:read", arguments=arguments, depends_on=after)


def dag(*tasks: DagTask) -> Dag:
    return Dag(tasks=tasks)


def test_a_dag_is_a_program_whose_layers_run_side_by_side() -> None:
    whole = dag(
        task("sum", "left", "right", texts=["$OUTPUT[left].text", "$OUTPUT[right].parts[0]"]),
        task("left", "list", path='$OUTPUT[list]["first one"]'),
        task("right", "list", path="$OUTPUT[list].second", deep={"n": 1, "from": "$OUTPUT[list]"}),
        task("list", folder="$INPUT[folder].path", empty={}, price="$$OUTPUT[x]"),
    )
    assert program_of_dag(whole) == (
        'const t1 = await mcp.call("fs:read", { "folder": args["folder"].path, "empty": {}, '
        '"price": "$OUTPUT[x]" });\n'
        "const [t2, t3] = await Promise.all([\n"
        '  mcp.call("fs:read", { "path": t1["first one"] }),\n'
        '  mcp.call("fs:read", { "path": t1.second, "deep": { "n": 1, "from": t1 } }),\n'
        "]);\n"
        'const t4 = await mcp.call("fs:read", { "texts": [t2.text, t3.parts[0]] });\n'
        'return { "sum": t4, "left": t2, "right": t3, "list": t1 };\n'
    )


def test_what_was_waited_for_on_the_way_may_be_referred_to() -> None:
    assert "t1.x" in program_of_dag(
        dag(task("a"), task("b", "a"), task("c", "b", value="$OUTPUT[a].x"))
    )


@pytest.mark.parametrize(
    ("whole", "why"),
    [
        (dag(task("a"), task("a")), "there are two tasks a"),
        (dag(task("a", "b")), "task a depends on b, and there is no such task"),
        (dag(task("a", "a")), "its tasks wait for each other: a waits for a"),
        (
            dag(task("z"), task("a", "z", "b"), task("b", "c"), task("c", "b")),
            "its tasks wait for each other: b waits for c waits for b",
        ),
        (
            dag(task("a", x="$OUTPUT[b].y")),
            "task a refers to $OUTPUT[b].y, and there is no such task",
        ),
        (
            dag(task("a"), task("b", x=[{"y": "$OUTPUT[a][0]"}])),
            "task b refers to $OUTPUT[a][0] and does not depend on it",
        ),
        (dag(task("a", x="$OUTPUT[a]")), "task a refers to $OUTPUT[a] and does not depend on it"),
        (dag(task("a", x="$OUTPUT[b] and more")), 'task a: "$OUTPUT[b] and more" is no reference'),
        (dag(task("a", x="$INPUT[]")), 'task a: "$INPUT[]" is no reference'),
        (dag(task("a", x='$INPUT[b]["\\x"]')), "is no reference"),
        (dag(task("a", x="$INPUT[b].__proto__")), "task a: $INPUT[b].__proto__: __proto__ is not"),
        (dag(task("a", x={"__proto__": 1})), "task a: a field named __proto__ is not allowed"),
        (dag(task("__proto__")), "no task may be called __proto__"),
        (dag(*(task(str(n)) for n in range(MOST_TASKS + 1))), "1,001 tasks, more than 1,000"),
    ],
)
def test_what_is_no_dag_is_refused_with_the_task_and_the_reason(whole: Dag, why: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        program_of_dag(whole)
    assert refused.value.field == "dag"
    assert why in str(refused.value)


def test_a_tool_is_called_with_its_defaults_under_what_the_caller_gives() -> None:
    plain = ToolSource(tool_id="temporal:start")
    assert program_of_tool(plain) == 'return await mcp.call("temporal:start", args);\n'
    deep = ToolSource(tool_id="a:b", default_args={"n": [1], "text": "$OUTPUT[x]"})
    assert program_of_tool(deep) == (
        'return await mcp.call("a:b", { ...{ "n": [1], "text": "$OUTPUT[x]" }, ...args });\n'
    )
    with pytest.raises(InvalidRequest, match="__proto__"):
        program_of_tool(ToolSource(tool_id="a:b", default_args={"__proto__": 1}))


@st.composite
def dags(draw: st.DrawFn) -> Dag:
    """Generate tasks that wait for earlier ones, in any order."""
    count = draw(st.integers(1, 12))
    tasks = [
        task(f"k{n}", *(f"k{m}" for m in draw(st.sets(st.integers(0, n - 1)))) if n else ())
        for n in range(count)
    ]
    return dag(*draw(st.permutations(tasks)))


@given(dags())
def test_every_task_comes_once_right_after_the_last_it_waits_for(whole: Dag) -> None:
    layers = layers_of(whole)
    place = {each.id: n for n, layer in enumerate(layers) for each in layer}
    assert len(place) == sum(map(len, layers)) == len(whole.tasks)
    for each in whole.tasks:
        assert place[each.id] == max((place[one] + 1 for one in each.depends_on), default=0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text() | st.just("$OUTPUT[a].b"),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text().filter(lambda k: k != "__proto__"), inner)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from("xyz"), JSON))
def test_values_that_are_meant_as_they_stand_stay_what_they_are(value: JsonObject) -> None:
    def never(reference: Reference) -> str:
        raise AssertionError(reference)

    assert json.loads(expression(text_of(value), never)) == value


@given(
    st.sampled_from(["OUTPUT", "INPUT"]),
    st.text("ab.$/0", min_size=1),
    st.lists(st.text() | st.integers(0, 9)),
)
def test_a_reference_is_read_as_it_is_written(kind: str, name: str, path: list[str | int]) -> None:
    reference = Reference("OUTPUT" if kind == "OUTPUT" else "INPUT", name, tuple(path))
    assert read(str(reference)) == reference


def test_a_path_leads_to_a_value_or_nowhere() -> None:
    assert at({"a": [{"b": 1}]}, ("a", 0, "b")) == 1
    for nowhere in [("c",), ("a", 1), (0,), ("a", "b")]:
        with pytest.raises(LookupError):
            at({"a": []}, nowhere)
    assert path_of("file.rows[0]") == ("rows", 0)
    assert path_of("file") == ()
    assert path_of("`${file}`") is None
    assert path_of("file.read()") is None
