"""Admission of analysed programs as capabilities."""

from pml_common.contracts.decision import Decision, ToolDecision
from pml_registry.domain.admission import admit, candidate_names, tools_used
from services.registry.tests.support.builders import UNNAMED, analysed, record


def test_a_new_capability_without_a_name_gets_a_provisional_one() -> None:
    admission = admit(analysed(intent="read it"), None, ())
    assert (admission.name, admission.change) == (UNNAMED, "created")
    assert (admission.description, admission.tools_used) == ("read it", ("fs:stat", "fs:read"))
    assert admission.altered


def test_tools_reached_through_other_capabilities_are_used_too() -> None:
    def decided(tool: str, *node_ids: str) -> ToolDecision:
        return ToolDecision(
            tool=tool, verdict="allow", reason="", definition_hash="0" * 64, node_ids=node_ids
        )

    tools = (decided("fs:read", "n1"), decided("git:log", "n1"), decided("fs:never"))
    decision = Decision(verdict="allow", tools=tools)
    analysis = analysed().model_copy(update={"decision": decision})
    assert tools_used(analysis) == ("fs:stat", "fs:read", "git:log")


def test_a_requested_name_is_not_given_before_a_run_has_succeeded() -> None:
    admission = admit(analysed(name="fs:ensure"), None, {UNNAMED})
    assert (admission.name, admission.change) == (f"{UNNAMED}0", "created")
    known = admit(analysed(name="fs:ensure"), record("fs:other"), ())
    assert (known.name, known.change, known.altered) == ("fs:other", None, False)


def test_an_intent_fills_an_empty_description_and_no_other() -> None:
    filled = admit(analysed(intent="read it"), record(), ())
    assert (filled.description, filled.change, filled.altered) == ("read it", None, True)
    kept = admit(analysed(intent="read it"), record(description="ensure it"), ())
    assert (kept.description, kept.altered) == ("ensure it", False)


def test_only_a_new_capability_needs_a_name() -> None:
    assert candidate_names(analysed(name="fs:ensure"), None)[0] == UNNAMED
    assert candidate_names(analysed(name="fs:ensure"), record()) == []


def test_each_tool_is_named_once_in_source_order() -> None:
    assert tools_used(analysed(tools=("b:y", "a:x", "b:y"))) == ("b:y", "a:x")


def test_the_document_is_built_from_the_admission() -> None:
    admission = admit(analysed(intent="make sure"), record("fs:ensure"), ())
    assert admission.document == "fs ensure. make sure. Uses fs read"


def test_the_terms_are_those_of_the_admission_and_its_parameters() -> None:
    admission = admit(analysed(intent="make sure"), record("fs:ensure"), ())
    terms = admission.terms({"type": "object", "properties": {"folder": {}}})
    assert {"fs", "ensur", "sure", "folder"} <= terms.keys()
