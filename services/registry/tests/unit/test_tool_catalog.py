"""Changes in a server's list."""

from datetime import timedelta
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.gateway import ObservedOutput, OutputsObserved
from pml_common.contracts.tool import JsonObject, QuarantinedTool, ToolDefinition
from pml_registry.domain.tool_catalog import (
    KnownServer,
    KnownTool,
    LearnedOutput,
    changes_in,
    is_outdated,
    is_tool_id,
    valid_quarantine,
    valid_tools,
    widened,
    with_output,
)
from services.registry.tests.support.builders import NOON, SCOPE, listed, tool

TEXT: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "number"}
DEFINITIONS = st.dictionaries(
    st.sampled_from(["fs:a", "fs:b", "fs:c", "fs:d"]), st.sampled_from(["", "one", "two"])
).map(lambda texts: [tool(tool_id, text) for tool_id, text in texts.items()])


def _known(tools: list[ToolDefinition], model: str = "m") -> dict[str, KnownTool]:
    return {known.tool_id: KnownTool(known.definition_hash, (model,)) for known in tools}


def test_new_and_redefined_tools_are_saved_and_missing_ones_removed() -> None:
    before = _known([tool("fs:same"), tool("fs:changed", "old"), tool("fs:gone")])
    listed = [tool("fs:same"), tool("fs:changed", "new"), tool("fs:new")]
    change = changes_in(listed, before, "m")
    assert [saved.tool_id for saved in change.saved] == ["fs:changed", "fs:new"]
    assert change.redefined == ("fs:changed", "fs:new")
    assert change.removed == ("fs:gone",)
    assert change.visible


def test_the_same_list_again_changes_nothing() -> None:
    change = changes_in([tool("fs:same")], _known([tool("fs:same")]), "m")
    assert (change.saved, change.removed, change.visible) == ((), (), False)


def test_a_vector_of_another_model_is_recomputed_without_a_visible_change() -> None:
    change = changes_in([tool("fs:same")], _known([tool("fs:same")], "older"), "m")
    assert [saved.tool_id for saved in change.saved] == ["fs:same"]
    assert not change.visible


def test_without_a_model_nothing_is_embedded_again() -> None:
    change = changes_in([tool("fs:same")], _known([tool("fs:same")], "older"), None)
    assert (change.saved, change.visible) == ((), False)


def test_only_a_servers_own_tools_with_valid_ids_are_accepted_once_each() -> None:
    endless = ToolDefinition(server="fs", name="x" * 300)
    foreign, spaced, nul = tool("git:log"), tool("fs:re ad"), tool("fs:re\x00ad")
    one, again = tool("fs:a", "one"), tool("fs:a", "again")
    assert valid_tools("fs", [foreign, endless, spaced, nul, one, again]) == (again,)


def test_a_tool_id_is_a_server_and_a_name() -> None:
    assert is_tool_id("fs:read")
    assert not is_tool_id("read")


def test_a_list_older_than_the_stored_one_is_outdated() -> None:
    known = KnownServer(NOON, {})
    assert is_outdated(NOON - timedelta(seconds=1), known)
    assert not is_outdated(NOON, known)
    assert not is_outdated(None, known)
    assert not is_outdated(NOON, KnownServer(None, {}))


@given(DEFINITIONS, DEFINITIONS)
def test_applying_the_changes_makes_the_catalog_equal_to_the_list(
    before: list[ToolDefinition], listed: list[ToolDefinition]
) -> None:
    rows = {known.tool_id: known for known in before}
    change = changes_in(listed, _known(before), "m")
    rows.update({saved.tool_id: saved for saved in change.saved})
    for tool_id in change.removed:
        del rows[tool_id]
    assert rows == {wanted.tool_id: wanted for wanted in listed}
    assert change.visible == (rows != {known.tool_id: known for known in before})


def test_quarantined_are_a_servers_own_tools_that_it_does_not_offer() -> None:
    def held(name: str, server: str = "fs") -> QuarantinedTool:
        return QuarantinedTool(server=server, name=name, changed=("input",), definition_hash="0")

    foreign, no_id, usable = held("log", "git"), held("re ad"), held("read")
    message = listed(tool("fs:read")).model_copy(
        update={"quarantined": (held("write"), foreign, no_id, usable, held("stat"))}
    )
    assert valid_quarantine(message) == (held("stat"), held("write"))


def _observed(*shapes: JsonObject, definition: str = "d1") -> OutputsObserved:
    outputs = [
        ObservedOutput(name="read", definition_hash=definition, result_schema=shape)
        for shape in shapes
    ]
    return OutputsObserved(scope=SCOPE, event_id=uuid4(), server="fs", outputs=tuple(outputs))


def test_what_is_learned_of_results_widens_by_each_message() -> None:
    tools = {"fs:read": KnownTool("d1")}
    first = widened(_observed(TEXT), tools, {})
    assert first == {"fs:read": LearnedOutput("d1", TEXT)}
    assert widened(_observed(TEXT), tools, first) == {}
    (both,) = widened(_observed(TEXT, NUMBER), tools, {}).values()
    assert widened(_observed(NUMBER), tools, first) == {"fs:read": both}
    assert both.shape not in (TEXT, NUMBER)
    former = {"fs:read": LearnedOutput("d0", NUMBER)}
    assert widened(_observed(TEXT), tools, former) == first


def test_results_of_other_definitions_and_of_unknown_tools_teach_nothing() -> None:
    observed = _observed(TEXT, definition="d0")
    assert widened(observed, {"fs:read": KnownTool("d1")}, {}) == {}
    assert widened(observed, {}, {}) == {}


def test_learned_results_are_shown_where_the_server_says_nothing() -> None:
    plain = tool("fs:read")
    assert with_output(plain, TEXT).learned_output == TEXT
    assert with_output(plain, None) is plain
    stated = plain.model_copy(update={"output_schema": {"type": "object"}})
    assert with_output(stated, TEXT) is stated
