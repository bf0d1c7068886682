"""The console of a program, as the command shows it."""

import json
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import Gateway, pml

WORKFLOW = "4d0b6fb2-acbc-5f0f-9660-00e28ec29407"
LOGS = [{"level": "info", "message": "2 [files]"}, {"level": "error", "message": "a\x1b[2Jb"}]


def test_what_the_program_wrote_to_its_console_is_shown(
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    answer = {
        **{"status": "success", "result": 1, "workflow_id": WORKFLOW},
        **{"logs": LOGS, "logs_omitted": 3},
    }
    program = tmp_path / "program.ts"
    program.write_text("console.log(1); return 1;", encoding="utf-8")
    gateway.answers["POST /api/execute"] = (200, answer)
    assert pml(monkeypatch, "execute", str(program)) == 0
    shown = capsys.readouterr().out
    assert f"3 earlier lines of the console: pml trace {WORKFLOW} --as console" in shown
    assert "info 2 [files]" in shown
    assert "\x1b[2J" not in shown
    path = f"/api/workflows/{WORKFLOW}"
    found = {"status": "success", "logs": LOGS, "logs_omitted": 0}
    gateway.answers[f"GET {path}"] = (200, found)
    gateway.answers[f"GET {path}/trace"] = (200, {"traces": []})
    assert pml(monkeypatch, "trace", WORKFLOW) == 0
    shown = capsys.readouterr().out
    assert "info 2 [files]" in shown
    assert "earlier lines" not in shown


def test_the_console_is_shown_in_pages(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"/api/workflows/{WORKFLOW}/console"
    page = {"lines": LOGS, "offset": 10, "total": 5000, "lost": 7, "next_offset": 12}
    gateway.answers[f"GET {path}"] = (200, page)
    words = ("trace", WORKFLOW, "--as", "console", "--limit", "2", "--offset", "10")
    assert pml(monkeypatch, *words) == 0
    assert gateway.asked == [(f"GET {path}?limit=2&offset=10", None)]
    shown = capsys.readouterr()
    assert "info 2 [files]" in shown.out
    assert shown.err.splitlines() == [
        "7 earlier lines are kept in the journal alone",
        f"lines 11 to {10 + len(LOGS)} of 5,000",
        "next page: the same command with --offset 12",
    ]
    assert pml(monkeypatch, *words, "--json") == 0
    shown = capsys.readouterr()
    assert (json.loads(shown.out), shown.err) == (page, "")


def test_a_console_without_lines_and_pages_of_something_else_are_told(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page: dict[str, object] = {"lines": [], "offset": 0, "total": 0, "lost": 0, "next_offset": None}
    gateway.answers[f"GET /api/workflows/{WORKFLOW}/console"] = (200, page)
    assert pml(monkeypatch, "trace", WORKFLOW, "--as", "console") == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("no lines\n", "")
    assert pml(monkeypatch, "trace", WORKFLOW, "--limit", "5") == 2
    assert "--limit and --offset are for --as console" in capsys.readouterr().err
