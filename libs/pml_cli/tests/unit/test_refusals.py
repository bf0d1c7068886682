"""Output of errors: text and stream."""

import json
import sys
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import Gateway, pml

WORKFLOW = "4d0b6fb2-acbc-5f0f-9660-00e28ec29407"


def test_a_refusal_of_the_gateway_is_a_line_on_stderr_and_one_of_json_where_that_is_asked_for(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = {"error": {"kind": "unavailable", "message": "NATS does not answer"}}
    gateway.answers["POST /api/execute"] = (503, refusal)
    assert pml(monkeypatch, "execute", "--capability", "x:y", "--json") == 1
    shown = capsys.readouterr()
    message = "NATS does not answer (HTTP 503)"
    error = {"kind": "unavailable", "message": message}
    assert json.loads(shown.out) == {"status": "error", "error": error}
    assert shown.err == f"pml: {message}\n"
    assert pml(monkeypatch, "execute", "--capability", "x:y") == 1
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "code", "kind", "complaint"),
    [
        (("execute", "nowhere.ts", "--json"), 2, "usage", "cannot read nowhere.ts"),
        (("tools", "--url", "http://127.0.0.1:1", "--json"), 4, "unreachable", "run `pml up`"),
        (("analyze", "nowhere.ts", "--format", "json"), 2, "usage", "cannot read nowhere.ts"),
        (("analyze", "nowhere.ts", "--format=json"), 2, "usage", "cannot read nowhere.ts"),
        (("discover", "--json"), 2, "usage", "Missing argument 'intent'"),
        (("discover", "--limit", "none", "x", "--json"), 2, "usage", "Invalid value for '--limit'"),
        (("forget", "--json"), 2, "usage", "No such command"),
    ],
    ids=["file", "gateway", "format", "format=", "missing", "invalid", "unknown"],
)
def test_a_failure_is_json_on_stdout_where_json_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    code: int,
    kind: str,
    complaint: str,
) -> None:
    assert pml(monkeypatch, *words) == code
    shown = capsys.readouterr()
    error = json.loads(shown.out)
    assert error["status"] == "error"
    assert error["error"]["kind"] == kind
    assert complaint in error["error"]["message"]
    assert shown.err == f"pml: {error['error']['message']}\n"


def test_an_answer_of_another_form_is_a_line_without_the_validators_text(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = {"name": "fs:read", "usage": {"count": "several"}}
    gateway.answers["GET /api/capabilities"] = (200, {"capabilities": [one], "total": 1})
    assert pml(monkeypatch, "capabilities", "--json") == 1
    shown = capsys.readouterr()
    message = json.loads(shown.out)["error"]["message"]
    assert message == (
        "the answer has not the form that this command reads (count: must be a whole number): use "
        "the command of the gateway's version"
    )
    assert shown.err == f"pml: {message}\n"


def test_with_json_help_and_success_are_what_they_are_without(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["GET /api/tools"] = (200, {"tools": []})
    assert pml(monkeypatch, "tools", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"tools": []}
    assert pml(monkeypatch, "tools", "--json", "--help") == 0
    assert "Usage" in capsys.readouterr().out


def test_tools_are_shown_with_where_their_result_types_are_from(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = [
        {"server": "fs", "name": "read", "output_schema": {"type": "object"}},
        {"server": "fs", "name": "stat", "learned_output": {"type": "number"}},
        {"server": "fs", "name": "wipe"},
    ]
    notice = "learned outputs are not shown"
    gateway.answers["GET /api/tools"] = (200, {"tools": tools, "notices": [notice]})
    assert pml(monkeypatch, "tools") == 0
    shown = capsys.readouterr()
    assert [line.split() for line in shown.out.splitlines()[1:]] == [
        ["fs:read", "declared"],
        ["fs:stat", "learned"],
        ["fs:wipe"],
    ]
    assert notice in shown.err


def test_a_server_that_is_no_gateway_is_an_error(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["GET /api/tools"] = (200, "<html>")
    assert pml(monkeypatch, "tools") == 1
    assert "is this a PML gateway?" in capsys.readouterr().err
    gateway.answers["GET /api/tools"] = (404, "<html>")
    assert pml(monkeypatch, "tools") == 1
    assert "HTTP 404" in capsys.readouterr().err


def test_without_a_gateway_the_error_says_how_to_start_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("PML_URL", raising=False)
    assert pml(monkeypatch, "tools", "--url", "http://127.0.0.1:1") == 4
    assert "run `pml up`" in capsys.readouterr().err
    nowhere = ("--url", "http://127.0.0.1:1", "--home", str(tmp_path))
    assert pml(monkeypatch, "status", *nowhere) == 4
    assert f"no stack runs on {tmp_path}" in capsys.readouterr().err


def test_an_invalid_workflow_id_is_not_sent(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pml(monkeypatch, "approvals", "approve", "the-last-one") == 2
    assert "'the-last-one' is not a workflow's id" in capsys.readouterr().err
    assert gateway.asked == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("execute", "nowhere.ts"), "cannot read nowhere.ts: No such file"),
        (("execute", "-", "--arg", "novalue"), "expected key=value"),
        (("execute", "-", "--args-json", "{tmp}/list.json"), "must be a JSON object"),
        (("execute", "-", "--args-json", "{tmp}/broken.json"), "broken.json:2:1: not JSON"),
    ],
)
def test_invalid_arguments_are_an_error_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: tuple[str, ...],
    complaint: str,
) -> None:
    (tmp_path / "list.json").write_text("[1]", encoding="utf-8")
    (tmp_path / "broken.json").write_text('{"a":\n', encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", (tmp_path / "list.json").open(encoding="utf-8"))
    given = tuple(word.replace("{tmp}", str(tmp_path)) for word in words)
    assert pml(monkeypatch, *given, "--url", "http://127.0.0.1:1") == 2
    assert complaint in capsys.readouterr().err
    sys.stdin.close()
