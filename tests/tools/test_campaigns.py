"""Campaigns: parts and rules fit the tree, a change names what it needs, a record continues."""

import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tools.gate import campaigns, nightly
from tools.gate.campaigns import PARTS, RULES, Part, needed
from tools.gate.nightly import Result, open_parts, parsed, rendered, tree_hash

ROOT = Path(__file__).parents[2]
NAMES = [part.name for part in PARTS]


def result(part: str, state: str = "passed", tree: str = "abc") -> Result:
    return Result(part, state, tree, "2026-11-28", 90, 1.5)


def test_every_part_is_a_target_of_make() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [part.name for part in PARTS if f"\n{part.command[1]}:" not in makefile] == []
    assert len(set(NAMES)) == len(NAMES)


def test_every_rule_matches_files_and_names_parts() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    patterns = [pattern for rule in RULES for pattern in rule.files]
    idle = [each for each in patterns if not any(fnmatchcase(file, each) for file in tracked)]
    assert idle == []
    assert {part for rule in RULES for part in rule.parts} <= set(NAMES)


def test_every_part_is_needed_by_a_change_or_is_said_to_be_for_the_night_alone() -> None:
    assert set(NAMES) - {part for rule in RULES for part in rule.parts} == {"others"}


@pytest.mark.parametrize(
    ("changed", "parts"),
    [
        ("services/executor/src/pml_executor/runtime/host.js", {"hostile", "bound"}),
        ("services/gateway/src/pml_gateway/sql/migrations/0017_x.sql", {"upgrade-test"}),
        ("docs/glossary.md", set[str]()),
        ("services/gateway/tests/unit/test_grant.py", set[str]()),
    ],
)
def test_a_change_needs_what_its_files_say(changed: str, parts: set[str]) -> None:
    assert set(needed([changed])) == parts


def test_contributing_has_the_tables() -> None:
    assert campaigns.main("check") == 0


def test_a_record_is_read_as_it_is_written() -> None:
    results = {name: result(name) for name in NAMES}
    assert parsed(rendered(results)) == results


def test_what_passed_on_this_tree_is_not_run_again() -> None:
    results = {"crash": result("crash"), "faults": result("faults", "failed")}
    names = [part.name for part in open_parts(results, "abc")]
    assert "crash" not in names
    assert "faults" in names
    assert "crash" in [part.name for part in open_parts(results, "another")]
    assert [part.name for part in open_parts(results, "abc", ["crash"], again=True)] == ["crash"]


def test_a_tree_is_the_same_with_another_proof() -> None:
    listing = "100644 blob a\tMakefile\n100644 blob {}\tdocs/proof/faults.md\n"
    assert tree_hash(listing.format("b")) == tree_hash(listing.format("c"))
    assert tree_hash(listing.format("b")) != tree_hash(listing.replace("blob a", "blob d"))


def test_a_part_does_not_get_the_arguments_of_the_make_that_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Makefile").write_text("part:\n\t@test -z '$(ARGS)'\n")
    monkeypatch.setattr(nightly, "ROOT", tmp_path)
    monkeypatch.setattr(nightly, "LOGS", tmp_path / "logs")
    monkeypatch.setenv("ARGS", "--only part")
    monkeypatch.setenv("MAKEFLAGS", " -- ARGS=--only\\ part")
    assert nightly.run(Part("part", "nothing"), "tree").result == "passed"
