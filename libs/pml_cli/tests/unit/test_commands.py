"""The command against a scripted gateway: requests, output and exit codes."""

import json
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import Gateway, pml
from pml_cli.render.versions import version_line

WORKFLOW = "4d0b6fb2-acbc-5f0f-9660-00e28ec29407"
CAPABILITY = "bfde1ab3-3f21-5896-84dd-b846b27ca7e8"
EXAMPLES = Path(__file__).parents[3] / "pml_common/examples"
QUESTION: dict[str, object] = {
    "workflow_id": WORKFLOW,
    "approval_id": "a-1",
    "outcome": None,
    "shown_digest": "ab" * 32,
    "whole": False,
}


def program(tmp_path: Path) -> str:
    path = tmp_path / "program.ts"
    path.write_text("return await mcp.fs.read({ path: args.path });", encoding="utf-8")
    return str(path)


SUCCESS: dict[str, object] = {
    "status": "success",
    "result": {"content": "hello"},
    "capability_id": CAPABILITY,
    "capability_name": "fs:greet",
    "workflow_id": WORKFLOW,
}


def test_a_program_is_sent_with_its_arguments_and_its_result_shown(
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    gateway.answers["POST /api/execute"] = (200, SUCCESS)
    words = ("--intent", "greet", "--arg", "path=a b", "--arg", "deep=[1,2]", "--timeout", "5")
    assert pml(monkeypatch, "execute", program(tmp_path), *words) == 0
    assert gateway.asked == [
        (
            "POST /api/execute",
            {
                "code": "return await mcp.fs.read({ path: args.path });",
                "intent": "greet",
                "args": {"path": "a b", "deep": [1, 2]},
                "timeout": 5.0,
            },
        )
    ]
    shown = capsys.readouterr()
    assert "success fs:greet" in shown.out
    assert '{"content": "hello"}' in shown.out


def test_a_run_without_a_result_says_that_nothing_is_to_be_repeated(
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    told = "Do not repeat the program: its calls were made."
    gateway.answers["POST /api/execute"] = (200, SUCCESS | {"result": None, "notices": [told]})
    assert pml(monkeypatch, "execute", program(tmp_path)) == 0
    assert told in capsys.readouterr().err
    found: dict[str, object] = {"status": "success", "notices": [told]}
    gateway.answers[f"GET /api/workflows/{WORKFLOW}"] = (200, found)
    gateway.answers[f"GET /api/workflows/{WORKFLOW}/trace"] = (200, {"traces": []})
    assert pml(monkeypatch, "trace", WORKFLOW) == 0
    assert told in capsys.readouterr().err


def test_json_is_the_whole_of_stdout(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["POST /api/execute"] = (200, SUCCESS)
    assert pml(monkeypatch, "execute", "--capability", "fs:greet", "--json") == 0
    assert json.loads(capsys.readouterr().out) == SUCCESS
    assert gateway.asked[0][1] == {"capability": "fs:greet"}


def test_an_error_shows_its_place_and_exits_with_one(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = {
        "kind": "syntax",
        "message": "the program cannot be read",
        "line": 2,
        "diagnostics": [
            {
                "severity": "error",
                "message": "expected )",
                "line": 2,
                "column": 9,
                "source_line": "foo(bar;",
            }
        ],
    }
    gateway.answers["POST /api/execute"] = (
        200,
        {"status": "error", "workflow_id": WORKFLOW, "error": error},
    )
    assert pml(monkeypatch, "execute", "--capability", "x:y") == 1
    out = capsys.readouterr().out
    assert "syntax at line 2: the program cannot be read" in out
    assert "2:9 error: expected )" in out
    assert "foo(bar;" in out
    assert f"\nworkflow {WORKFLOW}" in out


def test_an_error_that_counts_others_is_shown_once(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"line": 2, "column": 9}
    first = {"severity": "error", "message": "no await", **places, "source_line": "foo(bar);"}
    other = {**first, "line": 3, "source_line": "baz();"}
    error = {"kind": "rejected", "message": "no await (and 1 more)", **places}
    gateway.answers["POST /api/execute"] = (
        200,
        {
            "status": "error",
            "workflow_id": WORKFLOW,
            "error": {**error, "diagnostics": [first, other]},
        },
    )
    assert pml(monkeypatch, "execute", "--capability", "x:y") == 1
    out = capsys.readouterr().out
    assert "rejected at line 2, column 9: no await (and 1 more)" in out
    assert "2:9 error" not in out
    assert "foo(bar);" in out
    assert "3:9 error: no await" in out


def test_a_required_approval_shows_why_and_how_and_exits_with_three(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["POST /api/execute"] = (
        200,
        {
            "status": "approval_required",
            "workflow_id": WORKFLOW,
            "approval": {
                "reasons": ["fs:write changes [files] (line 1)."],
                "expires_at": "2026-11-21T10:30:00Z",
            },
        },
    )
    assert pml(monkeypatch, "execute", "--capability", "x:y") == 3
    out = capsys.readouterr().out
    assert "nothing has run yet" in out
    assert "fs:write changes [files] (line 1)." in out
    assert f"pml approvals approve {WORKFLOW}" in out


def test_the_status_shows_errors_of_servers_and_the_policy_file(
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("PML_HOME", str(tmp_path))
    health = {
        "status": "ok",
        "checks": {"nats": "ok"},
        "policy": "policy.json: rules.0.verdict: is missing",
        "mcp_servers": {"web": "connection refused"},
    }
    gateway.answers["GET /healthz"] = (200, health)
    assert pml(monkeypatch, "status") == 0
    out = capsys.readouterr().out
    assert "MCP server web: connection refused" in out
    assert "policy: policy.json: rules.0.verdict: is missing" in out


@pytest.mark.parametrize(("status", "code"), [("running", 5), ("suggestions", 0)])
def test_every_status_has_its_exit_code(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, status: str, code: int
) -> None:
    gateway.answers["POST /api/execute"] = (200, {"status": status, "workflow_id": WORKFLOW})
    assert pml(monkeypatch, "execute", "--capability", "x:y") == code


def test_a_decision_is_sent_for_the_workflow(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"POST /api/workflows/{WORKFLOW}/approval"
    gateway.answers[path] = (200, SUCCESS)
    gateway.answers[path.replace("POST", "GET")] = (200, QUESTION)
    assert pml(monkeypatch, "approvals", "approve", WORKFLOW, "--wait") == 0
    assert "hello" in capsys.readouterr().out
    gateway.answers[path] = (200, {"status": "error", "workflow_id": WORKFLOW})
    assert pml(monkeypatch, "approvals", "deny", WORKFLOW) == 0
    assert [body for _, body in gateway.asked if body] == [
        {"decision": "approve", "wait": True, "shown": {"digest": "ab" * 32, "whole": False}},
        {"decision": "deny", "wait": False},
    ]
    gateway.asked.clear()
    words = ("approvals", "replan", WORKFLOW, "--approval", "a-1", "--reason", "too much")
    assert pml(monkeypatch, *words) == 0
    sent = {"decision": "replan", "wait": False, "approval_id": "a-1", "reason": "too much"}
    assert gateway.asked[0][1] == sent


@pytest.mark.parametrize(("kind", "code"), [("cancelled", 0), ("tool_error", 1)])
def test_a_cancelled_workflow_shows_how_it_ended(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, kind: str, code: int
) -> None:
    error = {"kind": kind, "message": "it has called nothing"}
    answer = {"status": "error", "workflow_id": WORKFLOW, "error": error}
    gateway.answers[f"POST /api/workflows/{WORKFLOW}/cancel"] = (200, answer)
    assert pml(monkeypatch, "cancel", WORKFLOW) == code
    assert pml(monkeypatch, "cancel", WORKFLOW, "--reason", "why not") == code
    sent = [body for _, body in gateway.asked]
    assert sent == [{"wait": True}, {"wait": True, "reason": "why not"}]


def test_the_data_of_a_workflow_is_deleted(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    route = f"DELETE /api/workflows/{WORKFLOW}"
    gateway.answers[route] = (204, "")
    assert pml(monkeypatch, "workflows", "delete", WORKFLOW) == 0
    assert f"deleted the data of workflow {WORKFLOW}" in capsys.readouterr().out
    assert pml(monkeypatch, "workflows", "delete", WORKFLOW, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"workflow_id": WORKFLOW, "deleted": True}
    error = {"kind": "conflict", "message": "cancel it first"}
    gateway.answers[route] = (409, {"error": error})
    assert pml(monkeypatch, "workflows", "delete", WORKFLOW) == 1
    assert "cancel it first" in capsys.readouterr().err
    assert [line for line, _ in gateway.asked] == [route] * 3


def test_the_approval_of_a_parked_run_is_decided_by_its_id(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"id": "a-1", "begun": True, "reasons": ["The run waits."], "expires_at": "later"}
    answer = {"status": "approval_required", "workflow_id": WORKFLOW, "approval": asked}
    gateway.answers["POST /api/execute"] = (200, answer)
    assert pml(monkeypatch, "execute", "--capability", "x:y") == 3
    out = capsys.readouterr().out
    assert "nothing has run yet" not in out
    assert f"pml approvals approve {WORKFLOW} --approval a-1" in out


def test_pending_approvals_are_listed_with_whole_ids_in_a_narrow_terminal(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    waiting = {
        "workflow_id": WORKFLOW,
        "expires_at": "2026-11-21T10:30:00Z",
        "reasons": ["Calls fs:write [line 1]."],
    }
    gateway.answers["GET /api/approvals"] = (200, {"approvals": [waiting], "total": 1})
    assert pml(monkeypatch, "approvals", "list") == 0
    out = capsys.readouterr().out
    assert WORKFLOW in out
    assert "Calls fs:write [line 1]." in out
    gateway.answers["GET /api/approvals"] = (200, {"approvals": [], "total": 0})
    assert pml(monkeypatch, "approvals", "list") == 0
    assert "no pending approvals" in capsys.readouterr().out


def test_a_workflow_is_drawn_with_structure_path_and_durations(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    analyzed = json.loads((EXAMPLES / "evt.analyzer.execution-analyzed.v1.json").read_text())
    traces = json.loads((EXAMPLES / "qry.learner.list-traces.v1.reply.json").read_text())
    gateway.answers[f"GET /api/workflows/{WORKFLOW}"] = (
        200,
        {"status": "error", "structure": analyzed["structure"]},
    )
    gateway.answers[f"GET /api/workflows/{WORKFLOW}/trace"] = (200, traces)
    assert pml(monkeypatch, "trace", WORKFLOW) == 0
    out = capsys.readouterr().out
    assert "d1 if listing.content.includes" in out
    assert "n3 fs:write_file(path: args.folder" in out
    assert "path n1 → d1 false → n3" in out
    assert "✗ n3 fs:write_file 5.0 ms" in out


def test_a_capability_is_drawn_with_its_learned_paths(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads((EXAMPLES / "qry.registry.resolve-capability.v2.reply.json").read_text())
    record |= {"health": "failing", "notices": ["call fs:ensure_file@1"]}
    gateway.answers["GET /api/capabilities/fs:ensure_file"] = (200, record)
    assert pml(monkeypatch, "capabilities", "fs:ensure_file") == 0
    out, noted = capsys.readouterr()
    assert "call fs:ensure_file@1" in noted
    assert "n1 → d1 → n2" in out
    assert "dominant" in out
    assert "signed with the key 5f1c9a0be27d4436, not verified" in out
    assert "source: code" in out
    assert "failing" in out


@pytest.mark.parametrize(
    ("record", "line"),
    [
        ({"version": 1, "key_id": None}, "version 1, not signed, not verified"),
        (
            {"version": 2, "version_tag": "v1.1.0", "key_id": "5f1c", "verified": True},
            "version 2 (v1.1.0), signed with the key 5f1c, verified",
        ),
    ],
)
def test_a_version_is_described_with_its_signature(record: dict[str, object], line: str) -> None:
    assert version_line(record) == line


def test_hits_are_listed_best_first_with_their_signatures(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = json.loads((EXAMPLES / "qry.registry.discover.v1.reply.json").read_text())
    gateway.answers["POST /api/discover"] = (200, page)
    assert pml(monkeypatch, "discover", "make a file", "--limit", "2") == 0
    out = capsys.readouterr().out
    shown = [
        "fs:ensure_file",
        "capabilities.fs_ensure_file(",
        "fs:write_file",
        "mcp.fs.write_file(",
    ]
    places = [out.index(text) for text in shown]
    assert places == sorted(places)


def test_an_answer_that_joined_an_earlier_call_says_so(
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    gateway.answers["POST /api/execute"] = (200, {**SUCCESS, "joined": True})
    assert pml(monkeypatch, "execute", program(tmp_path), "--fresh") == 0
    assert '"fresh": true' in json.dumps(gateway.asked)
    assert "joined the workflow of an earlier, equal call" in capsys.readouterr().out
