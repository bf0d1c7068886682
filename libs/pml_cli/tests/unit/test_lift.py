"""Lifting a program's literal arguments into parameters."""

import json
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import pml

TOOLS = [{"server": "fs", "name": "read"}]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    code = 'return await mcp.fs.read({ path: "a", limit: 3 });'
    Path("program.ts").write_text(code, encoding="utf-8")
    Path("tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")


def _lift(monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    return pml(monkeypatch, "analyze", "program.ts", "--lift", *more)


def test_the_program_is_printed_and_its_parameters_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _lift(monkeypatch, "--catalog", "tools.json") == 0
    printed = capsys.readouterr()
    assert printed.out == (
        'return await mcp.fs.read({ path: args.path ?? "a", limit: args.limit ?? 3 });\n'
    )
    assert printed.err == 'path = "a"  n1\nlimit = 3  n1\n'


def test_as_json_it_comes_with_the_schema(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _lift(monkeypatch, "--catalog", "tools.json", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document.keys() == {"code", "parameters_schema", "lifted"}
    assert document["parameters_schema"]["properties"]["limit"] == {"type": "number", "default": 3}
    assert document["lifted"]["path"] == {"node_ids": ["n1"], "default": "a"}


def test_a_program_that_cannot_run_is_not_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _lift(monkeypatch) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "fs:read cannot be called" in printed.err
    assert "only tools of a catalogue are known" in printed.err
    assert _lift(monkeypatch, "--json") == 1
    assert json.loads(capsys.readouterr().out)["diagnostics"]


@pytest.mark.parametrize("more", [("--format", "dot"), ("--format", "tree")])
def test_it_is_no_drawing(
    more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _lift(monkeypatch, *more) == 2
    assert "--lift prints one program" in capsys.readouterr().err
