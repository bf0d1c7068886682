"""Analysis of a program offline with a scope's policy and known capabilities."""

import json
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import pml

TOOLS = [{"server": "fs", "name": "write", "description": "Write a file."}]
PUT = {
    "capability_id": "bfde1ab3-3f21-5896-84dd-b846b27ca7e8",
    "name": "fs:put",
    "code": "return await mcp.fs.write({ path: args.path });",
    "code_hash": "3f1c" * 16,
    "parameters_schema": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
    "usage": {"count": 3},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    _write("tools.json", TOOLS)
    _write("capabilities.json", {"capabilities": [PUT], "total": 1})


def _write(file: str, document: object) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    Path(file).write_text(text, encoding="utf-8")


def _analyze(monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    return pml(monkeypatch, "analyze", "program.ts", "--catalog", "tools.json", *more)


def test_the_policy_of_the_scope_decides(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write("program.ts", "await mcp.fs.write({});")
    _write("policy.json", {"scopes": {"acme.web": {"otherwise": "deny"}}})
    verdicts: list[str] = []
    for more in (("--scope", "acme.web"), ("--scope", "acme.app"), ()):
        assert _analyze(monkeypatch, "--policy", "policy.json", "--json", *more) == 0
        verdicts.append(json.loads(capsys.readouterr().out)["decision"]["verdict"])
    assert verdicts == ["deny", "ask", "ask"]
    assert _analyze(monkeypatch, "--policy", "policy.json", "--scope", "acme") == 2
    assert "--scope acme: expected org.project" in capsys.readouterr().err


def test_capabilities_of_a_list_may_be_called(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write("program.ts", "await capabilities.fs_put({ path: 'a' });")
    assert _analyze(monkeypatch, "--capabilities", "capabilities.json") == 0
    out = capsys.readouterr().out
    assert '? n1 capability fs:put(path: "a")' in out
    assert 'Calls fs:write ("Write a file.") through capability fs:put on line 1' in out


def test_without_a_list_the_error_says_where_to_get_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write("program.ts", "await capabilities.fs_put({ path: 'a' });")
    assert _analyze(monkeypatch) == 1
    told = capsys.readouterr()
    assert 'There is no capability "fs_put".' in told.out
    assert "then --capabilities capabilities.json" in told.err
    _write("program.ts", "await capabilities.fs_putt({ path: 'a' });")
    assert _analyze(monkeypatch, "--capabilities", "capabilities.json") == 1
    told = capsys.readouterr()
    assert "Did you mean fs_put?" in told.out
    assert "--capabilities" not in told.err


def test_rules_may_name_capabilities(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write("program.ts", "await capabilities.fs_put({ path: 'a' });")
    rules = [{"pattern": "cap:fs:*", "verdict": "deny"}]
    _write("policy.json", {"rules": rules})
    files = ("--capabilities", "capabilities.json", "--policy", "policy.json")
    assert _analyze(monkeypatch, "--json", *files) == 0
    assert json.loads(capsys.readouterr().out)["decision"]["verdict"] == "deny"


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({}, "expected a list of capabilities, or an object with `capabilities`"),
        ([{"name": "x"}], "capability 0: capability_id: is missing"),
    ],
)
def test_an_invalid_list_of_capabilities_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    document: object,
    complaint: str,
) -> None:
    _write("program.ts", "return 1;")
    _write("capabilities.json", document)
    assert _analyze(monkeypatch, "--capabilities", "capabilities.json") == 2
    assert complaint in capsys.readouterr().err
