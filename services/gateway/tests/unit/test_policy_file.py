"""Policies from a file: read when it changes, kept when it cannot be read."""

import json
import logging
from pathlib import Path

import pytest

from pml_common.contracts.decision import Policy, Verdict
from pml_common.contracts.scope import Scope
from pml_common.service import CannotStart
from pml_gateway.adapters.policy_file import PolicyFile
from services.gateway.tests.examples import ELSEWHERE, READ, SCOPE

STRICT = Policy(otherwise="deny")


def _write(file: Path, document: object) -> None:
    """As an editor does: a new file in the old one's place."""
    aside = file.with_suffix(".new")
    aside.write_text(document if isinstance(document, str) else json.dumps(document))
    aside.replace(file)


def _verdict(policies: PolicyFile, scope: Scope = SCOPE) -> Verdict:
    return policies.of(scope).verdict_on(READ)[0]


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
    assert told.startswith(f"{file}: read_only: Input should be 'allow', 'ask' or 'deny'")
    _write(file, {"read_only": "deny"})
    assert (_verdict(policies), policies.fault()) == ("deny", None)


def test_a_file_that_is_taken_away_changes_nothing(file: Path) -> None:
    _write(file, {"read_only": "deny"})
    policies = PolicyFile(file, STRICT)
    file.unlink()
    assert _verdict(policies) == "deny"
    assert "is gone; what it said holds on" in (policies.fault() or "")
    _write(file, {"read_only": "ask"})
    assert (_verdict(policies), policies.fault()) == ("ask", None)


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
