"""A request for analysis of a program that calls capabilities."""

from collections.abc import Mapping, Sequence

import pytest

from pml_analysis.decision.capabilities import MAX_CAPABILITIES
from pml_analysis.text.limits import DEFAULT_LIMITS, Limits
from pml_analyzer.ports import CapabilitiesUnavailable
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.decision import Policy, PolicyRule
from pml_common.contracts.parameters import CERTAIN
from pml_common.contracts.registry import Reference
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from services.analyzer.tests.support.handling import handled
from services.analyzer.tests.support.library import PURE, READ_JSON, REPORT, described, meaning
from services.analyzer.tests.support.memory import MemoryCapabilities, MemoryCatalog
from services.analyzer.tests.support.programs import TOOLS
from services.analyzer.tests.unit.test_on_execution_requested import SCOPE, requested

KNOWN = (meaning("fs_read_json", READ_JSON), meaning("report_weekly", REPORT))


class Counting(MemoryCapabilities):
    """Records the queries."""

    def __init__(self, known: dict[str, Sequence[Reference]]) -> None:
        super().__init__(known)
        self.asked: list[list[str]] = []

    async def describe(
        self, scope: Scope, principal: str, references: Sequence[str]
    ) -> Mapping[str, Reference]:
        self.asked.append(list(references))
        return await super().describe(scope, principal, references)


def _capabilities(*known: Reference) -> Counting:
    return Counting({str(SCOPE): known})


async def _answer(
    code: str,
    capabilities: MemoryCapabilities,
    policy: Policy | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> ExecutionAnalyzed | AnalysisRejected:
    catalog = MemoryCatalog({str(SCOPE): TOOLS})
    (event,) = await handled(requested(code, policy), catalog, capabilities, limits)
    assert isinstance(event, ExecutionAnalyzed | AnalysisRejected)
    return event


async def test_nested_capabilities_are_looked_up_level_by_level_and_bound() -> None:
    capabilities = _capabilities(*KNOWN)
    event = await _answer("return capabilities.report_weekly({});", capabilities)
    assert isinstance(event, ExecutionAnalyzed)
    assert capabilities.asked == [["report_weekly"], ["fs_read_json"]]
    assert [(one.capability_id, one.code_hash) for one in event.capabilities] == [
        (REPORT.capability_id, REPORT.code_hash),
        (READ_JSON.capability_id, READ_JSON.code_hash),
    ]
    assert [one.called_as for one in event.capabilities] == [("report_weekly",), ("fs_read_json",)]
    assert event.decision.verdict == "ask"


async def test_nested_capabilities_are_stated_as_they_run() -> None:
    event = await _answer("return capabilities.report_weekly({});", _capabilities(*KNOWN))
    assert isinstance(event, ExecutionAnalyzed)
    report, read = event.injected
    assert (read.capability_id, read.name, read.code_hash, read.called_as) == (
        READ_JSON.capability_id,
        READ_JSON.name,
        READ_JSON.code_hash,
        ("fs_read_json",),
    )
    assert read.instrumented == (
        'return JSON.parse(await __pml.at("n1", mcp.fs.read)({ path: args.path }));'
    )
    assert [read.instrumented[start:end] for start, end in read.insertions] == [
        '__pml.at("n1", ',
        ")",
    ]
    assert '__pml.at("n1", capabilities.fs_read_json)' in report.instrumented


async def test_nested_capabilities_come_with_the_arguments_that_they_certainly_need() -> None:
    certain: JsonObject = {"required": ["path"]}
    strict = READ_JSON.model_copy(update={"parameters_schema": {CERTAIN: certain}})
    known = _capabilities(meaning("fs_read_json", strict), meaning("report_weekly", REPORT))
    event = await _answer("return capabilities.report_weekly({});", known)
    assert isinstance(event, ExecutionAnalyzed)
    report, read = event.injected
    assert (report.certain, read.certain) == ({}, certain)


async def test_nested_capabilities_need_what_their_parameters_require_too() -> None:
    schema: JsonObject = {"properties": {"path": {"type": "string"}}, "required": ["path"]}
    strict = READ_JSON.model_copy(update={"parameters_schema": schema})
    known = _capabilities(meaning("fs_read_json", strict), meaning("report_weekly", REPORT))
    event = await _answer("return capabilities.report_weekly({});", known)
    assert isinstance(event, ExecutionAnalyzed)
    assert event.injected[1].certain == {"required": ["path"]}


async def test_a_program_without_capabilities_asks_for_none() -> None:
    capabilities = _capabilities(*KNOWN)
    assert isinstance(await _answer("return 1;", capabilities), ExecutionAnalyzed)
    assert capabilities.asked == []


async def test_one_capability_under_two_names_is_one() -> None:
    capabilities = _capabilities(*KNOWN, meaning("fs:read_json", READ_JSON))
    code = "capabilities.fs_read_json({}); mcp.call('cap:fs:read_json', {});"
    event = await _answer(code, capabilities)
    assert isinstance(event, ExecutionAnalyzed)
    (one,) = event.capabilities
    assert set(one.called_as) == {"fs_read_json", "fs:read_json"}
    assert one.node_ids == ("n1", "n2")


async def test_an_unknown_capability_is_rejected_with_what_may_have_been_meant() -> None:
    near = Reference(reference="fs_raed_json", near=("fs_read_json",))
    event = await _answer("capabilities.fs_raed_json({});", _capabilities(near))
    assert isinstance(event, AnalysisRejected)
    (told,) = event.diagnostics
    assert told.message == ('There is no capability "fs_raed_json". Did you mean fs_read_json?')


async def test_a_program_is_rejected_that_reaches_a_capability_the_registry_refuses() -> None:
    tampered = Reference(reference="fs_read_json", refused="it is not what was signed")
    capabilities = _capabilities(meaning("report_weekly", REPORT), tampered)
    for code in ("capabilities.fs_read_json({});", "capabilities.report_weekly({});"):
        event = await _answer(code, capabilities)
        assert isinstance(event, AnalysisRejected)
        (told,) = event.diagnostics
        assert told.message.endswith("cannot be called: it is not what was signed")


async def test_another_scopes_capability_is_rejected_like_one_that_nobody_has() -> None:
    elsewhere = MemoryCapabilities({"rival.webapp": KNOWN})
    hidden = await _answer("capabilities.fs_read_json({});", elsewhere)
    nobodys = await _answer("capabilities.fs_read_json({});", MemoryCapabilities())
    assert hidden == nobodys
    assert isinstance(hidden, AnalysisRejected)


async def test_what_can_name_no_capability_is_not_asked_for() -> None:
    capabilities = _capabilities()
    event = await _answer("capabilities['\\ud800']({}); capabilities['a b']({});", capabilities)
    assert isinstance(event, AnalysisRejected)
    assert capabilities.asked == []


async def test_cycles_end_and_are_asked_for_once() -> None:
    cycle = (
        described("a:a", "return capabilities.a_b();"),
        described("a:b", "return capabilities.a_a();"),
    )
    capabilities = _capabilities(meaning("a_a", cycle[0]), meaning("a_b", cycle[1]))
    event = await _answer("return capabilities.a_a();", capabilities)
    assert isinstance(event, ExecutionAnalyzed)
    assert capabilities.asked == [["a_a"], ["a_b"]]


async def test_nothing_deeper_than_may_run_is_asked_for() -> None:
    chain = [described(f"x:c{n}", f"return capabilities.x_c{n + 1}();") for n in range(5)]
    known = [meaning(f"x_c{n}", one) for n, one in enumerate(chain)]
    capabilities = _capabilities(*known)
    event = await _answer("return capabilities.x_c0();", capabilities)
    assert isinstance(event, ExecutionAnalyzed)
    assert capabilities.asked == [["x_c0"], ["x_c1"], ["x_c2"]]


async def test_too_many_are_told_without_asking_for_all() -> None:
    names = [f"x_c{n}" for n in range(3 * MAX_CAPABILITIES)]
    known = [meaning(name, described(f"x:{name}", "return 1;")) for name in names]
    capabilities = _capabilities(*known)
    event = await _answer("".join(f"capabilities.{name}();" for name in names), capabilities)
    assert isinstance(event, AnalysisRejected)
    assert f"More than {MAX_CAPABILITIES} capabilities" in event.diagnostics[0].message
    assert [len(asked) for asked in capabilities.asked] == [MAX_CAPABILITIES + 1]


async def test_a_nested_tool_that_is_newer_than_the_copy_is_found() -> None:
    catalog = MemoryCatalog({str(SCOPE): ()})
    await catalog.tools(SCOPE)
    catalog.known = {str(SCOPE): TOOLS}
    request = requested("return capabilities.fs_read_json({});")
    (event,) = await handled(request, catalog, _capabilities(*KNOWN), DEFAULT_LIMITS)
    assert isinstance(event, ExecutionAnalyzed)


async def test_without_the_registry_the_request_waits() -> None:
    capabilities = MemoryCapabilities()
    capabilities.known = None
    with pytest.raises(CapabilitiesUnavailable):
        await _answer("return capabilities.fs_read_json({});", capabilities)
    assert isinstance(await _answer("return 1;", capabilities), ExecutionAnalyzed)


async def test_a_redelivery_states_the_same_facts_until_a_capability_changes() -> None:
    code = "return capabilities.fs_read_json({});"
    capabilities = _capabilities(*KNOWN)
    assert await _answer(code, capabilities) == await _answer(code, capabilities)
    changed = READ_JSON.model_copy(update={"code": "return 1;", "code_hash": "f" * 64})
    later = await _answer(code, _capabilities(meaning("fs_read_json", changed)))
    assert isinstance(later, ExecutionAnalyzed)
    assert later.capabilities[0].code_hash == "f" * 64
    assert later.decision.tools == ()


async def test_a_long_nested_program_is_read_too() -> None:
    padded = described("x:long", PURE.code + " " * 10_000)
    event = await _answer("return capabilities.x_long();", _capabilities(meaning("x_long", padded)))
    assert isinstance(event, ExecutionAnalyzed)


async def test_the_limits_hold_for_nested_programs() -> None:
    event = await _answer(
        "capabilities.x_y();",
        _capabilities(meaning("x_y", described("x:y", "return 1;" + " " * 100))),
        limits=Limits(source_bytes=50),
    )
    assert isinstance(event, AnalysisRejected)
    assert "the limit is 50" in event.diagnostics[0].message


async def test_nested_programs_together_may_only_be_so_long() -> None:
    names = [f"x_c{n}" for n in range(6)]
    long = [described(f"x:{name}", f"return '{name}';{' ' * 80}") for name in names]
    capabilities = _capabilities(*map(meaning, names, long))
    code = "".join(f"capabilities.{name}();" for name in names)
    limits = Limits(source_bytes=len(code))
    assert 5 * len(long[0].code) <= 4 * len(code) < 6 * len(long[0].code)
    event = await _answer(code, capabilities, limits=limits)
    assert isinstance(event, AnalysisRejected)
    assert [told.message for told in event.diagnostics] == [
        "Capability x:x_c5 cannot be called: its program and those before it are too long to be "
        "read for one program."
    ]
    fewer = "".join(f"capabilities.{name}();" for name in names[:5])
    assert isinstance(await _answer(fewer, capabilities, limits=limits), ExecutionAnalyzed)


async def test_the_names_of_the_capability_that_runs_are_decided_on() -> None:
    policy = Policy(rules=(PolicyRule(pattern="cap:math:*", verdict="deny"),))
    request = requested(PURE.code, policy).model_copy(update={"known_as": ("math:double",)})
    (event,) = await handled(request, MemoryCatalog(), MemoryCapabilities(), DEFAULT_LIMITS)
    assert isinstance(event, ExecutionAnalyzed)
    assert event.decision.verdict == "deny"


async def test_what_is_to_be_changed_about_a_call_is_a_warning_where_it_stands() -> None:
    notice = "fs_read_json was renamed to fs:load; use the new name"
    renamed = meaning("fs_read_json", READ_JSON).model_copy(update={"notices": (notice,)})
    event = await _answer("return capabilities.fs_read_json({});", _capabilities(renamed))
    assert isinstance(event, ExecutionAnalyzed)
    (told,) = event.diagnostics
    assert (told.severity, told.line, told.message) == ("warning", 1, f"Capability {notice}.")
