"""Use and health of capabilities, as people read them."""

import pytest

from libs.pml_cli.tests.support.fakes import Gateway, pml
from pml_cli.render.use import health_text, interval_text, others_text, rate_text, use_text
from pml_common.contracts.capability import Usage

USED = Usage(
    count=20,
    success_count=3,
    caller_faults=2,
    environment_faults=1,
    mean_duration_ms=9,
    value=0.17,
    low=0.06,
    high=0.4,
)


def test_runs_are_told_by_whose_fault_they_failed() -> None:
    assert use_text(USED) == (
        "20 runs of this version: 3 succeeded, 14 failed by itself, 2 by its caller, "
        "1 by its environment; 9.0 ms on average"
    )
    assert use_text(Usage()) == "no runs of this version"
    assert others_text(USED) == "2 caller, 1 environment"
    assert others_text(Usage(count=1)) == ""


def test_a_use_says_whether_it_is_of_a_version_or_of_all() -> None:
    one = Usage(count=1, success_count=1, mean_duration_ms=2)
    assert use_text(one) == "1 run of this version: 1 succeeded; 2.0 ms on average"
    assert use_text(one.model_copy(update={"counts": "record"})).startswith("1 run of all versions")
    assert use_text(Usage(counts="record")) == "no runs of all versions"


def test_a_rate_is_told_with_its_interval() -> None:
    assert rate_text(USED) == "17% (6-40)"
    assert rate_text(Usage(count=4, success_count=3)) == "75%"
    assert rate_text(Usage(count=4, caller_faults=4)) == "-"
    assert interval_text(1, None, None) == "100%"


def test_the_version_to_call_instead_stands_beside_the_health() -> None:
    assert health_text("failing", "fs:read@2") == "[red]failing[/] [dim]use fs:read@2[/]"
    assert health_text("healthy") == "[green]healthy[/]"


def test_capabilities_are_listed_with_rate_faults_and_health(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = {
        "name": "fs:read",
        "usage": USED.model_dump(),
        "health": "failing",
        "last_good": "fs:read@2",
        "description": "reads",
    }
    gateway.answers["GET /api/capabilities"] = (200, {"capabilities": [one], "total": 1})
    assert pml(monkeypatch, "capabilities") == 0
    printed = capsys.readouterr()
    assert printed.err == "runs and success are those of the latest version\n"
    out = " ".join(printed.out.split())
    assert "name runs success not judged health description" in out
    for shown in ("17% (6-40)", "2 caller", "1 environment", "failing", "use fs:read@2"):
        assert set(shown.split()) <= set(out.replace(",", " ").split())


def test_a_hit_that_fails_is_flagged(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hit = {"type": "capability", "name": "fs:read", "score": 0.5, "description": "reads"}
    bad = {**hit, "health": "failing", "last_good": "fs:read@2"}
    gateway.answers["POST /api/discover"] = (200, {"hits": [bad, {**hit, "health": "healthy"}]})
    assert pml(monkeypatch, "discover", "read") == 0
    out = capsys.readouterr().out
    assert "failing use fs:read@2" in out
    assert "healthy" not in out
