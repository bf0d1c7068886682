"""Typed tools on the command line."""

import json
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import Gateway, pml

TOOLS = [
    {
        "server": "fs",
        "name": "read",
        "description": "Reads a file.",
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
        "annotations": {"read_only": True},
    }
]
EXAMPLES = Path(__file__).parents[3] / "pml_common/examples"
READ = "    /** Reads a file. */\n    readonly read: (args: { path: string }) => Promise<any>;\n"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "tools.json"
    file.write_text(json.dumps({"tools": TOOLS}), encoding="utf-8")
    return file


def test_the_declarations_of_a_catalog_are_printed(
    catalog: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pml(monkeypatch, "types", "--catalog", str(catalog)) == 0
    out = capsys.readouterr().out
    assert READ in out
    assert out.endswith("declare const capabilities: PmlCapabilities;\n")


def test_without_a_catalog_the_connected_tools_are_declared(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["GET /api/tools"] = (200, {"tools": TOOLS})
    file = EXAMPLES / "qry.registry.list-capabilities.v2.reply.json"
    page = json.loads(file.read_text(encoding="utf-8"))
    one = {**page["capabilities"][0], "name": "a:b", "code": "return 1 - args.n;"}
    page["capabilities"] = [one]
    gateway.answers["GET /api/capabilities"] = (200, page)
    assert pml(monkeypatch, "types", "--json") == 0
    declared = json.loads(capsys.readouterr().out)["declarations"]
    assert READ in declared
    assert "readonly a_b: (" in declared
    assert ") => Promise<number>;" in declared
    assert '"cap:a:b": (' in declared


def _analyze(monkeypatch: pytest.MonkeyPatch, catalog: Path, program: str, *more: str) -> int:
    file = catalog.with_name("program.ts")
    file.write_text(program, encoding="utf-8")
    words = (str(file), "--catalog", str(catalog), "--types", *more)
    return pml(monkeypatch, "analyze", *words)


@pytest.mark.integration
def test_a_type_error_rejects_a_program_and_shows_its_place(
    catalog: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "const file = await mcp.fs.read({\n  path: 1,\n});\nreturn file;\n"
    assert _analyze(monkeypatch, catalog, program) == 1
    out = capsys.readouterr().out
    assert "2:3 error: Type 'number' is not assignable to type 'string'." in out
    assert "\n    path: 1,\n    ^" in out


@pytest.mark.integration
def test_a_program_without_type_errors_is_shown_as_usual(
    catalog: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "return await mcp.fs.read({ path });"
    assert _analyze(monkeypatch, catalog, program, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["decision"]["verdict"] == "allow"
    assert found["diagnostics"] == []
