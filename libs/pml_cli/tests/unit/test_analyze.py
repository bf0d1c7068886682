"""Reading a program offline."""

import json
from pathlib import Path

import pytest

from libs.pml_cli.tests.scripted import pml

PROGRAM = """
const listing = await mcp.fs.list({ path: args.path });
if (listing.includes("x")) {
  await mcp.fs.write({ path: args.path, content: "[x]" });
}
"""
TOOLS = [
    {"server": "fs", "name": "list", "annotations": {"read_only": True}},
    {"server": "fs", "name": "write", "description": "Write a file."},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "program.ts").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "tools.json").write_text(json.dumps({"tools": TOOLS}), encoding="utf-8")
    return tmp_path


def _analyze(monkeypatch: pytest.MonkeyPatch, folder: Path, *more: str) -> int:
    words = (str(folder / "program.ts"), "--catalog", str(folder / "tools.json"), *more)
    return pml(monkeypatch, "analyze", *words)


def test_a_program_is_drawn_with_its_branches_and_the_decision(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _analyze(monkeypatch, folder) == 0
    out = capsys.readouterr().out
    assert "n1 fs:list(path: <path>)" in out
    assert 'd1 if listing.includes("x")' in out
    assert "true\n" in out
    assert "n2 fs:write(path: <path>, content: \"[x]\")" in out
    assert "decision ask" in out


def test_a_policy_file_decides(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = folder / "policy.json"
    rule = {"pattern": "fs:*", "verdict": "allow"}
    policy.write_text(json.dumps({"rules": [rule]}), encoding="utf-8")
    assert _analyze(monkeypatch, folder, "--policy", str(policy), "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["decision"]["verdict"] == "allow"
    assert set(found) == {
        "static_structure",
        "dynamic_calls",
        "diagnostics",
        "decision",
        "parameters_schema",
        "code_hash",
        "instrumented",
    }


def test_a_rejected_program_shows_where_and_exits_with_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "program.ts").write_text("await mcp.fs.raed({});\n", encoding="utf-8")
    assert _analyze(monkeypatch, folder) == 1
    out = capsys.readouterr().out
    assert out.startswith("rejected\n1:")
    assert "await mcp.fs.raed({});\n" in out


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("{}", "expected a list of tools"), ('[{"name": "x"}]', "tool 0: server: Field required")],
)
def test_a_catalogue_that_is_none_is_said_to_be_none(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    complaint: str,
) -> None:
    (folder / "tools.json").write_text(text, encoding="utf-8")
    assert _analyze(monkeypatch, folder) == 2
    assert complaint in capsys.readouterr().err


def test_a_policy_that_is_none_is_said_to_be_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "policy.json").write_text('{"otherwise": "maybe"}', encoding="utf-8")
    assert _analyze(monkeypatch, folder, "--policy", str(folder / "policy.json")) == 2
    assert "otherwise: Input should be" in capsys.readouterr().err
