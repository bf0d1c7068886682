"""Policies from a file: read when it changes, unchanged when it cannot be read."""

import json
import logging
from pathlib import Path

import pytest

from pml_common.contracts.decision import Policy, Verdict
from pml_common.contracts.scope import Scope
from pml_common.service import CannotStart
from pml_gateway.adapters.policy_file import GONE_AFTER_S, PolicyFile
from services.gateway.tests.support.builders import ELSEWHERE, READ, SCOPE

STRICT = Policy(otherwise="deny")


def _write(file: Path, document: object) -> None:
    """Replace the file by a new one, as an editor does."""
    aside = file.with_suffix(".new")
    aside.write_text(document if isinstance(document, str) else json.dumps(document))
    aside.replace(file)


def _verdict(policies: PolicyFile, scope: Scope = SCOPE) -> Verdict:
    return policies.of(scope).verdict_on(READ)[0]


class Clock:
    """A clock that only moves when set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "policy.json"


@pytest.mark.parametrize("named", [True, False])
def test_without_a_file_the_settings_hold(file: Path, named: bool) -> None:
    policies = PolicyFile(file if named else None, STRICT)
    assert policies.of(SCOPE) == STRICT
    assert policies.fault() is None


def test_every_scope_has_the_policy_that_the_file_gives_it(file: Path) -> None:
    _write(file, {"read_only": "ask", "scopes": {str(ELSEWHERE): {"read_only": "deny"}}})
    policies = PolicyFile(file, STRICT)
    assert (_verdict(policies), _verdict(policies, ELSEWHERE)) == ("ask", "deny")
    assert policies.of(SCOPE).otherwise == "ask"


def test_a_change_holds_from_the_next_look_on(file: Path) -> None:
    policies = PolicyFile(file, STRICT)
    verdicts: list[Verdict] = ["ask", "deny", "allow"]
    for verdict in verdicts:
        _write(file, {"rules": [{"pattern": "fs:*", "verdict": verdict}]})
        assert _verdict(policies) == verdict


def test_a_file_written_in_place_is_noticed_too(file: Path) -> None:
    file.write_text('{"read_only": "ask"}')
    policies = PolicyFile(file, STRICT)
    file.write_text('{"read_only": "deny"}')
    assert _verdict(policies) == "deny"


def test_a_fault_changes_nothing_and_is_told_once(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _write(file, {"read_only": "ask"})
    policies = PolicyFile(file, STRICT)
    _write(file, '{"read_only": "alow"}')
    with caplog.at_level(logging.ERROR):
        assert [_verdict(policies) for _ in range(3)] == ["ask"] * 3
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    told = policies.fault() or ""
    assert told.startswith(f"{file}: read_only: must be 'allow', 'ask' or 'deny'")
    _write(file, {"read_only": "deny"})
    assert (_verdict(policies), policies.fault()) == ("deny", None)


def test_a_file_that_an_editor_replaces_holds_on(file: Path, clock: Clock) -> None:
    _write(file, {"read_only": "deny"})
    policies = PolicyFile(file, STRICT, clock)
    file.unlink()
    assert _verdict(policies) == "deny"
    clock.now += GONE_AFTER_S
    assert _verdict(policies) == "deny"
    assert "is gone; what it said holds for 10 s more" in (policies.fault() or "")
    _write(file, {"read_only": "ask"})
    assert (_verdict(policies), policies.fault()) == ("ask", None)


def test_a_file_gone_for_longer_means_the_default_with_a_warning(
    file: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    _write(file, {"rules": [{"pattern": "fs:*", "verdict": "allow"}]})
    policies = PolicyFile(file, STRICT, clock)
    aside = file.rename(file.with_suffix(".aside"))
    assert policies.of(SCOPE) != STRICT
    clock.now += GONE_AFTER_S + 0.1
    assert [policies.of(SCOPE) for _ in range(3)] == [STRICT] * 3
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "gone for more than 10 s: the default policy holds" in (policies.fault() or "")
    aside.rename(file)
    assert policies.of(SCOPE) != STRICT
    assert policies.fault() is None


def test_the_time_without_a_file_counts_anew_each_time(file: Path, clock: Clock) -> None:
    policies = PolicyFile(file, STRICT, clock)
    for _ in range(3):
        _write(file, {"otherwise": "ask"})
        assert policies.of(SCOPE).otherwise == "ask"
        file.unlink()
        assert policies.of(SCOPE).otherwise == "ask"
        clock.now += GONE_AFTER_S - 1


def test_what_is_no_text_is_a_fault(file: Path) -> None:
    _write(file, {"read_only": "deny"})
    policies = PolicyFile(file, STRICT)
    file.write_bytes(b"\xff\xfe")
    assert "cannot be read" in (policies.fault() or "")
    assert _verdict(policies) == "deny"


def test_what_cannot_be_reached_is_a_fault(tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    _write(folder / "policy.json", {"read_only": "deny"})
    policies = PolicyFile(folder / "policy.json", STRICT)
    folder.rename(tmp_path / "aside")
    folder.write_text("no folder any more")
    assert "cannot be read" in (policies.fault() or "")
    assert _verdict(policies) == "deny"
    folder.unlink()
    (tmp_path / "aside").rename(folder)
    assert (_verdict(policies), policies.fault()) == ("deny", None)


def test_a_fault_at_the_start_is_told_and_nothing_starts(file: Path) -> None:
    _write(file, {"rules": [{"pattern": "fs", "verdict": "allow"}], "otherwise": 1})
    with pytest.raises(CannotStart, match=r"policy\.json: rules\.0\.pattern: .*; otherwise: "):
        PolicyFile(file, STRICT)
