"""Admission of analysed programs as capabilities."""

from pml_common.contracts.decision import Decision, ToolDecision
from pml_registry.domain.admission import admit, candidate_names, tools_used
from services.registry.tests.support.builders import UNNAMED, analysed, record


def test_a_new_capability_without_a_name_gets_a_provisional_one() -> None:
    admission = admit(analysed(intent="read it"), None, ())
    assert (admission.name, admission.named, admission.change) == (UNNAMED, False, "created")
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


def test_a_new_capability_gets_the_requested_name_if_it_is_free() -> None:
    admission = admit(analysed(name="fs:ensure"), None, ())
    assert (admission.name, admission.named, admission.refused_name) == ("fs:ensure", True, None)


def test_a_taken_name_is_refused_and_the_capability_still_created() -> None:
    admission = admit(analysed(name="fs:ensure"), None, {"fs:ensure", UNNAMED})
    assert (admission.name, admission.named) == (f"{UNNAMED}0", False)
    assert (admission.refused_name, admission.change) == ("fs:ensure", "created")


def test_an_unnamed_capability_gets_a_name_requested_later() -> None:
    admission = admit(analysed(name="fs:ensure"), record(), ())
    assert (admission.name, admission.named, admission.change) == ("fs:ensure", True, "named")
    assert admission.altered


def test_a_later_name_that_is_taken_is_refused() -> None:
    admission = admit(analysed(name="fs:ensure"), record(), {"fs:ensure"})
    assert (admission.name, admission.named, admission.change) == (UNNAMED, False, None)
    assert admission.refused_name == "fs:ensure"
    assert not admission.altered


def test_a_given_name_never_changes() -> None:
    admission = admit(analysed(name="fs:other"), record("fs:ensure"), ())
    assert (admission.name, admission.change) == ("fs:ensure", None)
    assert admission.refused_name == "fs:other"
    assert not admission.altered


def test_requesting_its_own_name_refuses_nothing() -> None:
    admission = admit(analysed(name="fs:ensure"), record("fs:ensure"), ())
    assert (admission.refused_name, admission.altered) == (None, False)


def test_an_intent_fills_an_empty_description_and_no_other() -> None:
    filled = admit(analysed(intent="read it"), record(), ())
    assert (filled.description, filled.change, filled.altered) == ("read it", None, True)
    kept = admit(analysed(intent="read it"), record(description="ensure it"), ())
    assert (kept.description, kept.altered) == ("ensure it", False)


def test_candidate_names_are_only_those_that_may_be_given() -> None:
    assert candidate_names(analysed(name="fs:ensure"), None)[:2] == ["fs:ensure", UNNAMED]
    assert candidate_names(analysed(), None)[0] == UNNAMED
    assert candidate_names(analysed(name="fs:ensure"), record()) == ["fs:ensure"]
    assert candidate_names(analysed(name="fs:ensure"), record("fs:other")) == []
    assert candidate_names(analysed(), record()) == []


def test_each_tool_is_named_once_in_source_order() -> None:
    assert tools_used(analysed(tools=("b:y", "a:x", "b:y"))) == ("b:y", "a:x")


def test_the_document_is_built_from_the_admission() -> None:
    admission = admit(analysed(name="fs:ensure", intent="make sure"), None, ())
    assert admission.document == "fs ensure. make sure. Uses fs stat, fs read"
