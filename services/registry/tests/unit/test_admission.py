"""Admission of analysed programs as capabilities."""

from pml_common.contracts.decision import Decision, ToolDecision
from pml_registry.domain.admission import admit, candidate_names, tools_used
from services.registry.tests.support.builders import UNNAMED, analysed


def test_a_new_capability_gets_a_provisional_name_whatever_it_is_to_be_called() -> None:
    admission = admit(analysed(name="fs:ensure"), ())
    assert (admission.name, admission.tools_used) == (UNNAMED, ("fs:stat", "fs:read"))
    assert candidate_names(analysed(name="fs:ensure"))[0] == UNNAMED
    assert admit(analysed(name="fs:ensure"), {UNNAMED}).name == f"{UNNAMED}0"


def test_a_request_that_has_not_succeeded_describes_nothing() -> None:
    admission = admit(analysed(intent="zzz nonsense"), ())
    assert admission.document == "unnamed a7f3. Uses fs stat, fs read"
    assert "nonsens" not in admission.terms({})


def test_tools_reached_through_other_capabilities_are_used_too() -> None:
    def decided(tool: str, *node_ids: str) -> ToolDecision:
        return ToolDecision(
            tool=tool, verdict="allow", reason="", definition_hash="0" * 64, node_ids=node_ids
        )

    tools = (decided("fs:read", "n1"), decided("git:log", "n1"), decided("fs:never"))
    decision = Decision(verdict="allow", tools=tools)
    analysis = analysed().model_copy(update={"decision": decision})
    assert tools_used(analysis) == ("fs:stat", "fs:read", "git:log")


def test_each_tool_is_named_once_in_source_order() -> None:
    assert tools_used(analysed(tools=("b:y", "a:x", "b:y"))) == ("b:y", "a:x")


def test_the_terms_are_those_of_the_admission_and_its_parameters() -> None:
    terms = admit(analysed(), ()).terms({"type": "object", "properties": {"folder": {}}})
    assert {"stat", "read", "folder"} <= terms.keys()
