"""Text of agents, tools and servers cannot control the terminal; `--json` is raw."""

import io
import json
import sys
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from libs.pml_cli.tests.support.fakes import Gateway, pml
from pml_cli.output import Output
from pml_cli.terminal import Terminal
from pml_local.errors import PartFailedError

EVIL = "\x1b]0;owned\x07\x1b[2J\u202e[red]\u200b\x9b1m\r"
WORKFLOW = "4d0b6fb2-acbc-5f0f-9660-00e28ec29407"
FORBIDDEN = {"\x1b", "\x07", "\x9b", "\r", "\u202e", "\u200b"}


def _harmless(text: str) -> None:
    assert not FORBIDDEN & set(text)
    assert "]0;owned\\" in text, "control characters are shown as text"
    assert "[red]" in text, "markup is shown as text"


def _error() -> dict[str, object]:
    found = {"severity": EVIL, "message": EVIL, "line": 1, "column": 2, "source_line": EVIL}
    return {
        "kind": EVIL,
        "message": EVIL,
        "node_id": EVIL,
        "tool": EVIL,
        "line": 9,
        "diagnostics": [found],
    }


ANSWERS = {
    "a result": ({"status": "success", "result": EVIL, "capability_name": EVIL}, 0),
    "a result in parts": ({"status": "success", "result": {EVIL: [EVIL]}}, 0),
    "an error": ({"status": "error", "error": _error()}, 1),
    "a question": (
        {
            "status": "approval_required",
            "approval": {"id": EVIL, "reasons": [EVIL], "expires_at": EVIL, "begun": True},
        },
        3,
    ),
    "a dry run": (
        {
            "status": "success",
            "dry_run": True,
            "tasks": [{"tool": EVIL, "id": EVIL, "mocked": True}],
            "result": None,
        },
        0,
    ),
}


@pytest.mark.parametrize(("answer", "code"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_shown_without_control_characters(
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: dict[str, object],
    code: int,
) -> None:
    gateway.answers["POST /api/execute"] = (200, {"workflow_id": WORKFLOW, **answer})
    assert pml(monkeypatch, "execute", "--capability", "x:y") == code
    _harmless(capsys.readouterr().out)


def test_lists_are_shown_without_control_characters(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    tool = {"server": EVIL, "name": EVIL, "description": EVIL}
    gateway.answers["GET /api/tools"] = (200, {"tools": [tool]})
    assert pml(monkeypatch, "tools") == 0
    _harmless(capsys.readouterr().out)
    waiting = {
        "workflow_id": WORKFLOW,
        "expires_at": EVIL,
        "intent": EVIL,
        "reasons": [EVIL],
        "args": {EVIL: EVIL},
    }
    gateway.answers["GET /api/approvals"] = (200, {"approvals": [waiting], "total": 1})
    assert pml(monkeypatch, "approvals", "list") == 0
    _harmless(capsys.readouterr().out)
    hit = {"id": EVIL, "name": EVIL, "type": "tool", "score": 1.0, "description": EVIL}
    hit["signature"] = EVIL
    gateway.answers["POST /api/discover"] = (200, {"hits": [hit]})
    assert pml(monkeypatch, "discover", "x") == 0
    _harmless(capsys.readouterr().out)


def test_an_error_of_the_gateway_is_shown_without_control_characters(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["GET /api/tools"] = (409, {"error": {"kind": "conflict", "message": EVIL}})
    assert pml(monkeypatch, "tools") == 1
    _harmless(capsys.readouterr().err)


def test_json_is_raw(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = {"status": "success", "result": EVIL, "workflow_id": WORKFLOW}
    gateway.answers["POST /api/execute"] = (200, answer)
    assert pml(monkeypatch, "execute", "--capability", "x:y", "--json") == 0
    assert json.loads(capsys.readouterr().out)["result"] == EVIL


def test_a_failed_parts_log_is_shown_without_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "gateway.log"
    log.write_text(f"fs: {EVIL}")

    async def fail(*_: object) -> None:
        raise PartFailedError("gateway", "ended", log)

    monkeypatch.setattr("pml_cli.commands.up.run_until_stopped", fail)
    assert pml(monkeypatch, "up", "--home", str(tmp_path)) == 1
    _harmless(capsys.readouterr().err)


@pytest.mark.parametrize(
    "drawn",
    [Text(EVIL), Tree(Text(EVIL)), Text.assemble(("x", "bold"), EVIL)],
    ids=["text", "tree", "styled"],
)
def test_renderables_without_markup_are_shown_without_control_characters(
    capsys: pytest.CaptureFixture[str], drawn: Text | Tree
) -> None:
    Terminal(width=200).print(drawn)
    out = capsys.readouterr().out
    assert not FORBIDDEN & set(out)
    assert "\\x1b" in out


def test_our_own_styles_reach_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    table = Table("a", box=None)
    table.add_row("\x1b[31m:warning:")
    terminal = Terminal(width=80)
    terminal.print("[bold]x[/]", table)
    written = terminal.file
    assert isinstance(written, io.StringIO)
    assert "\x1b[1mx\x1b[0m" in written.getvalue()
    assert "\\x1b[31m:warning:" in written.getvalue()


def test_a_program_is_printed_raw_except_to_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    Output(as_json=False).document("a\x1b\n")
    assert capsys.readouterr().out == "a\x1b\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    Output(as_json=False).document("a\x1b\n")
    assert capsys.readouterr().out == "a\\x1b\n"


def test_no_name_is_printed_as_an_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    name = "cap:notes:cat:smile:x"
    out = Output(as_json=False)
    table = Table(name, title=name)
    table.add_row(name)
    tree = Tree(name)
    tree.add(name)
    out.show(None, name, f"[bold]{name}[/]", table, tree)
    out.note(name)
    said = capsys.readouterr()
    assert said.out.count(name) == 7
    assert said.err == f"{name}\n"
