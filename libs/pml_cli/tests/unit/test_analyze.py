"""Analysis of a program offline."""

import io
import json
import sys
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import pml

PROGRAM = """
const listing = await mcp.fs.list({ path: args.path });
if (listing.includes("x")) {
  await mcp.fs.write({ path: args.path, content: "[x]" });
}
"""
TOOLS = [
    {"server": "fs", "name": "list", "annotations": {"read_only": True}},
    {"server": "fs", "name": "write", "description": "Write a file."},
    {"server": "fs", "name": "stat", "annotations": {"read_only": True}},
]
KEYS = {
    "static_structure",
    "dynamic_calls",
    "diagnostics",
    "decision",
    "parameters_schema",
    "code_hash",
    "instrumented",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    Path("program.ts").write_text(PROGRAM, encoding="utf-8")
    Path("tools.json").write_text(json.dumps({"tools": TOOLS}), encoding="utf-8")
    return tmp_path


def _analyze(monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    return pml(monkeypatch, "analyze", "program.ts", "--catalog", "tools.json", *more)


@pytest.mark.usefixtures("folder")
def test_a_program_is_drawn_with_its_branches_and_the_decision(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _analyze(monkeypatch) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "program.ts",
        "├─ ✓ n1 fs:list(path: <path>)  line 2",
        '└─ d1 if listing.includes("x")  line 3',
        "   └─ true",
        '      └─ ? n2 fs:write(path: <path>, content: "[x]")  line 4',
        "",
        "takes  path",
        "decision ask",
        '  ? Calls fs:write ("Write a file.") on line 4 with path = the caller\'s path,',
        '    content = "[x]". Its server does not mark it read-only: ask.',
        "tools",
        "  ✓  fs:list   n1  Its server marks it read-only: allow.",
        "  ?  fs:write  n2  Its server does not mark it read-only: ask.",
    ]


@pytest.mark.usefixtures("folder")
def test_a_dynamic_call_is_drawn_with_the_tools_it_may_reach(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "const { limit = 5, kind } = args;\nawait mcp[kind].send({ limit });\n"
    Path("program.ts").write_text(code, encoding="utf-8")
    assert _analyze(monkeypatch) == 0
    out = capsys.readouterr().out
    assert "└─ ? mcp[kind].send({ limit })  line 2, known when it runs" in out
    assert "limit?: number = 5" in out
    assert "reachable by calls known when they run:  fs:list, fs:stat" in out


@pytest.mark.usefixtures("folder")
def test_a_policy_file_decides(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = {"pattern": "fs:*", "verdict": "allow"}
    Path("policy.json").write_text(json.dumps({"rules": [rule]}), encoding="utf-8")
    assert _analyze(monkeypatch, "--policy", "policy.json", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["decision"]["verdict"] == "allow"
    assert found.keys() == KEYS
    assert _analyze(monkeypatch, "--policy", "policy.json", "--json") == 0
    assert json.loads(capsys.readouterr().out) == found


@pytest.mark.usefixtures("folder")
def test_a_program_is_drawn_for_other_tools(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _analyze(monkeypatch, "--format", "mermaid") == 0
    out = capsys.readouterr().out
    assert out.startswith("flowchart TD\n")
    assert '  d1 -->|"true"| n2\n' in out
    assert "  class n2 ask\n" in out
    assert _analyze(monkeypatch, "--format", "dot") == 0
    assert capsys.readouterr().out.startswith("digraph structure {\n")


@pytest.mark.usefixtures("folder")
def test_a_diagram_that_viewers_refuse_is_drawn_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = "await mcp.fs.list({});\n" * 502
    Path("program.ts").write_text(calls, encoding="utf-8")
    assert _analyze(monkeypatch, "--format", "mermaid") == 0
    shown = capsys.readouterr()
    assert "  n501 --> n502\n" in shown.out
    assert "501 edges: Mermaid's viewers refuse more than 500" in shown.err


@pytest.mark.usefixtures("folder")
def test_a_rejected_program_shows_where_and_exits_with_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("program.ts").write_text("await mcp.fs.raed({});\n", encoding="utf-8")
    assert _analyze(monkeypatch) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "rejected"
    assert told[1].startswith("1:")
    assert told[-2:] == ["  await mcp.fs.raed({});", "        ^"]


@pytest.mark.usefixtures("folder")
def test_a_rejected_program_is_complete_in_json_and_not_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("program.ts").write_text("const = 1;", encoding="utf-8")
    assert _analyze(monkeypatch, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert {key for key, value in found.items() if value is None} == KEYS - {"diagnostics"}
    assert found["diagnostics"][0]["severity"] == "error"
    for form in ("mermaid", "dot"):
        assert _analyze(monkeypatch, "--format", form) == 1
        shown = capsys.readouterr()
        assert shown.out == ""
        assert "rejected" in shown.err


@pytest.mark.usefixtures("folder")
def test_a_terminal_that_cannot_show_everything_shows_what_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("program.ts").write_text('await mcp.fs.list({ path: "é" });', encoding="utf-8")
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert _analyze(monkeypatch) == 0
    assert _analyze(monkeypatch, "--json") == 0
    sys.stdout.flush()
    tree, _, document = raw.getvalue().decode("ascii").partition("{\n")
    assert 'n1 fs:list(path: "\\xe9")' in tree
    (node,) = json.loads("{" + document)["static_structure"]["nodes"]
    assert node["arguments"]["path"]["value"] == "é"


@pytest.mark.usefixtures("folder")
def test_a_long_line_is_cut_around_the_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "const a = [{}\t]; await mcp.fs.raed({{}}); // {}\n"
    Path("program.ts").write_text(line.format("1," * 60, "x" * 900), encoding="utf-8")
    assert _analyze(monkeypatch) == 1
    excerpt, mark = capsys.readouterr().out.splitlines()[-2:]
    assert len(excerpt) <= 80
    assert excerpt[mark.index("^") :].startswith("mcp.fs.raed({});")
    Path("program.ts").write_text(line.format("1," * 1_500, ""), encoding="utf-8")
    assert _analyze(monkeypatch) == 1
    (told,) = capsys.readouterr().out.splitlines()[1:]
    assert told.startswith("1:3022 error:")


@pytest.mark.usefixtures("folder")
def test_without_a_catalog_a_missing_tool_is_explained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pml(monkeypatch, "analyze", "program.ts") == 1
    assert "--catalog tools.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("{}", "expected a list of tools"), ('[{"name": "x"}]', "tool 0: server: is missing")],
)
@pytest.mark.usefixtures("folder")
def test_an_invalid_catalog_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    complaint: str,
) -> None:
    Path("tools.json").write_text(text, encoding="utf-8")
    assert _analyze(monkeypatch) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_an_invalid_policy_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("policy.json").write_text('{"otherwise": "maybe", "rule": []}', encoding="utf-8")
    assert _analyze(monkeypatch, "--policy", "policy.json") == 2
    err = " ".join(capsys.readouterr().err.split())
    assert "otherwise: must be" in err
    assert "rule: is not a known field" in err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "name one program, or - for standard input, or --stdin-jsonl"),
        (("program.ts", "--stdin-jsonl"), "name one program"),
        (("program.ts", "--format", "dot", "--json"), "--format dot is no JSON"),
        (("--format", "tree", "--stdin-jsonl"), "--format tree is no JSON"),
    ],
    ids=["no program", "two sources", "two forms", "lines that are no JSON"],
)
def test_contradictory_options_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    complaint: str,
) -> None:
    assert pml(monkeypatch, "analyze", *words) == 2
    assert complaint in capsys.readouterr().err


def test_a_program_is_read_as_it_is_but_for_a_byte_order_mark(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "program.ts").write_bytes(b"\xef\xbb\xbfreturn `a\r\nb`;\r\n")
    assert _analyze(monkeypatch, "--json") == 0
    assert json.loads(capsys.readouterr().out)["instrumented"] == "return `a\r\nb`;\r\n"
    (folder / "program.ts").write_bytes(b"return '\xff';")
    assert _analyze(monkeypatch) == 2
    assert "program.ts is not UTF-8 text (byte 8)" in capsys.readouterr().err
