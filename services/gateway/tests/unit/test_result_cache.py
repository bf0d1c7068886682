"""Conditions under which the result of an earlier run answers a call."""

from dataclasses import replace

import pytest

from pml_common.contracts.caching import CachePolicy
from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord
from pml_common.contracts.decision import Policy, PolicyRule, Verdict
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.tool import JsonObject, ToolAnnotations, ToolDefinition
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.result_cache import (
    CachedResult,
    CurrentState,
    cacheable,
    is_cached,
    key_of,
    nested_references,
    outdated,
)
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.support.builders import (
    AT,
    NESTED_HASH,
    READ,
    SCOPE,
    TOOLS,
    WRITE,
    analyzed,
    finished,
    later,
    with_capability,
    workflow,
)
from services.gateway.tests.support.fakes import record
from services.gateway.tests.support.steps import after, approve, asking

MEMOIZED = CachePolicy(policy="memoize", ttl_s=60, revision=1)
CALL = ExecuteRequest(capability="fs:look", args={"path": "/a"})


def cached(cache: CachePolicy = MEMOIZED, **changed: object) -> CapabilityRecord:
    return record(workflow(), "fs:look").model_copy(update={"cache": cache, **changed})


def ended(*tools: ToolDefinition, error: WorkflowError | None = None) -> Workflow:
    """Build a workflow that ran these tools and ended right after AT."""
    new = workflow()
    analysis = Analyzed(analyzed(new, tools=tools or (READ,)), AT)
    run = finished(new, result=1, error=error)
    return after(new, analysis, run)[0]


def rules(*given: tuple[str, Verdict]) -> Policy:
    return Policy(rules=tuple(PolicyRule(pattern=one, verdict=verdict) for one, verdict in given))


NOW = CurrentState(Policy(), TOOLS.get, {})


@pytest.mark.parametrize(
    ("request_", "policy", "goes"),
    [
        ({}, "memoize", True),
        ({}, "persistent", True),
        ({}, "none", False),
        ({"dry_run": True}, "memoize", False),
        ({"idempotency_key": "k"}, "memoize", False),
    ],
)
def test_only_real_calls_without_a_key_go_by_the_cache(
    request_: JsonObject, policy: str, *, goes: bool
) -> None:
    asked = ExecuteRequest.model_validate({"capability": "fs:look", **request_})
    known = cached(CachePolicy.model_validate({"policy": policy}))
    assert is_cached(known, asked) is goes


def test_calls_have_one_key_where_capability_code_settings_and_arguments_are_the_same() -> None:
    known = cached()
    key = key_of(known, {"a": 1, "b": {"c": None}})
    assert key == key_of(known, {"b": {"c": None}, "a": 1})
    assert (key.scope, key.capability_id, key.revision) == (SCOPE, known.capability_id, 1)
    others = (
        key_of(known, {"a": 1}),
        key_of(cached(MEMOIZED.model_copy(update={"revision": 2})), {"a": 1, "b": {"c": None}}),
        key_of(cached(code_hash=NESTED_HASH), {"a": 1, "b": {"c": None}}),
    )
    assert len({key, *others}) == 4


def test_a_result_holds_from_the_end_of_its_run_for_as_long_as_was_chosen() -> None:
    done = ended()
    assert cacheable(done, cached(), TOOLS.get) == CachedResult(done.workflow_id, later(61))
    for_ever = cacheable(done, cached(CachePolicy(policy="persistent")), TOOLS.get)
    assert for_ever == CachedResult(done.workflow_id, None)


def test_what_is_kept_holds_until_its_time_is_over() -> None:
    kept = CachedResult(ended().workflow_id, later(61))
    assert [kept.is_valid(later(at)) for at in (0, 60.9, 61)] == [True, True, False]
    assert replace(kept, expires_at=None).is_valid(later(10**8))


def test_what_failed_or_has_not_ended_is_not_kept() -> None:
    failed = ended(error=WorkflowError(kind="user_error", message="no"))
    new = workflow()
    running, _ = after(new, Analyzed(analyzed(new), AT))
    rejected = replace(new, state="succeeded")
    endless = replace(ended(), finished_at=None)
    void = replace(ended(), run=finished(new).model_copy(update={"void": True}))
    for each in (failed, new, running, rejected, endless, void):
        assert cacheable(each, cached(), TOOLS.get) is None


def test_what_a_person_agreed_to_is_not_kept_even_if_forced() -> None:
    new = workflow()
    run = finished(new)
    approved, _ = after(new, asking(new), approve(new), run)
    assert approved.state == "succeeded"
    forced = cached(CachePolicy(policy="memoize", force=True))
    assert cacheable(approved, forced, TOOLS.get) is None
    in_its_midst = replace(ended(), approval=approved.approval)
    assert cacheable(in_its_midst, forced, TOOLS.get) is None


def test_what_lists_the_tools_is_not_kept_even_if_forced() -> None:
    new = workflow()
    lists = analyzed(new).model_copy(update={"reads_catalog": True})
    running, _ = after(new, Analyzed(lists, AT))
    forced = cached(CachePolicy(policy="memoize", force=True))
    assert cacheable(ended(), forced, TOOLS.get) is not None
    assert cacheable(replace(ended(), analysis=running.analysis), forced, TOOLS.get) is None


def test_what_ran_as_another_capability_is_not_kept() -> None:
    other = cached(capability_id=workflow().workflow_id)
    assert cacheable(ended(), other, TOOLS.get) is None


def test_what_may_have_changed_something_is_kept_only_if_forced() -> None:
    forced = cached(CachePolicy(policy="memoize", force=True))
    for done in (ended(READ, WRITE), ended(ToolDefinition(server="gone", name="away"))):
        assert cacheable(done, cached(), TOOLS.get) is None
        assert cacheable(done, forced, TOOLS.get) is not None


def told(
    done: Workflow, now: CurrentState = NOW, known: CapabilityRecord | None = None
) -> str | None:
    assert done.analysis is not None
    return outdated(done.analysis, known or cached(), now)


def test_what_would_be_decided_the_same_is_told_again() -> None:
    assert told(ended()) is None


@pytest.mark.parametrize("verdict", ["ask", "deny"])
@pytest.mark.parametrize(
    ("pattern", "named"),
    [("fs:read", "fs:read"), ("cap:fs:look", "fs:look"), ("cap:fs:former", "fs:look")],
)
def test_what_the_policy_denies_or_asks_about_now_is_not_told(
    pattern: str, named: str, verdict: Verdict
) -> None:
    now = replace(NOW, policy=rules((pattern, verdict)))
    why_not = told(ended(), now, cached(aliases=("fs:former",)))
    assert why_not is not None
    assert named in why_not


def test_what_other_definitions_of_tools_would_answer_is_not_told() -> None:
    changed = READ.model_copy(update={"annotations": ToolAnnotations(read_only=False)})
    for found in ({"fs:read": changed}, dict[str, ToolDefinition]()):
        now = replace(NOW, find=found.get)
        assert told(ended(), now) == "fs:read is no longer listed, or has changed"


def test_what_other_capabilities_would_answer_is_not_told() -> None:
    new = workflow()
    analysis = with_capability(analyzed(new))
    assert nested_references(analysis) == ("fs_look",)
    about = CapabilityDescription(
        capability_id=new.workflow_id, name="fs:inner", code="", code_hash=NESTED_HASH
    )
    same = replace(NOW, nested={"fs_look": about})
    assert outdated(analysis, cached(), same) is None
    for other in ({}, {"fs_look": about.model_copy(update={"code_hash": "other"})}):
        why_not = outdated(analysis, cached(), replace(NOW, nested=other))
        assert why_not == "fs_look is another capability now"
    why_not = outdated(analysis, cached(), replace(same, policy=rules(("cap:fs:inner", "deny"))))
    assert why_not is not None
    assert "capability fs:inner" in why_not
