"""The command against a scripted gateway: what it sends, prints and exits with."""

import json
import sys
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pml_cli.app import main

WORKFLOW = "4d0b6fb2-acbc-5f0f-9660-00e28ec29407"
CAPABILITY = "bfde1ab3-3f21-5896-84dd-b846b27ca7e8"
EXAMPLES = Path(__file__).parents[3] / "pml_common/examples"


@dataclass
class Gateway:
    """Answers by method and path, and remembers what it was asked."""

    url: str
    answers: dict[str, tuple[int, object]] = field(default_factory=dict[str, tuple[int, object]])
    asked: list[tuple[str, object]] = field(default_factory=list[tuple[str, object]])


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Generator[Gateway]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            line = f"{self.command} {self.path.split('?')[0]}"
            scripted.asked.append((f"{self.command} {self.path}", body))
            status, answer = scripted.answers[line]
            text = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = _answer  # noqa: N815 - the names http.server calls

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    scripted = Gateway(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("PML_URL", scripted.url)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    yield scripted
    server.shutdown()
    thread.join()
    server.server_close()


def pml(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command as the shell would; its exit code."""
    monkeypatch.setattr(sys, "argv", ["pml", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    code = ended.value.code
    return code if isinstance(code, int) else 0


def program(tmp_path: Path) -> str:
    path = tmp_path / "program.ts"
    path.write_text("return await mcp.fs.read({ path: args.path });", encoding="utf-8")
    return str(path)


SUCCESS: dict[str, object] = {
    "status": "success",
    "result": {"content": "hello"},
    "capabilityId": CAPABILITY,
    "capabilityName": "fs:greet",
    "workflowId": WORKFLOW,
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


def test_json_is_the_whole_of_stdout(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["POST /api/execute"] = (200, SUCCESS)
    assert pml(monkeypatch, "execute", "--capability", "fs:greet", "--json") == 0
    assert json.loads(capsys.readouterr().out) == SUCCESS
    assert gateway.asked[0][1] == {"capability": "fs:greet"}


def test_an_error_says_what_where_and_exits_with_one(
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
        {"status": "error", "workflowId": WORKFLOW, "error": error},
    )
    assert pml(monkeypatch, "execute", "--capability", "x:y") == 1
    out = capsys.readouterr().out
    assert "syntax at line 2: the program cannot be read" in out
    assert "2:9 error: expected )" in out
    assert "foo(bar;" in out


def test_what_waits_for_approval_says_why_and_how_and_exits_with_three(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["POST /api/execute"] = (
        200,
        {
            "status": "approval_required",
            "workflowId": WORKFLOW,
            "approval": {
                "reasons": ["fs:write changes [files] (line 1)."],
                "expiresAt": "2026-11-21T10:30:00Z",
            },
        },
    )
    assert pml(monkeypatch, "execute", "--capability", "x:y") == 3
    out = capsys.readouterr().out
    assert "nothing has run yet" in out
    assert "fs:write changes [files] (line 1)." in out
    assert f"pml approvals approve {WORKFLOW}" in out


@pytest.mark.parametrize(("status", "code"), [("running", 5), ("suggestions", 0)])
def test_every_status_has_its_exit_code(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, status: str, code: int
) -> None:
    gateway.answers["POST /api/execute"] = (200, {"status": status, "workflowId": WORKFLOW})
    assert pml(monkeypatch, "execute", "--capability", "x:y") == code


def test_a_refusal_of_the_gateway_is_one_line_on_stderr(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = {"error": {"kind": "unavailable", "message": "NATS does not answer"}}
    gateway.answers["POST /api/execute"] = (503, refusal)
    assert pml(monkeypatch, "execute", "--capability", "x:y", "--json") == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "pml: NATS does not answer (HTTP 503)\n"


def test_something_that_is_not_a_gateway_is_said_to_be_none(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["GET /api/tools"] = (200, "<html>")
    assert pml(monkeypatch, "tools") == 1
    assert "is this a PML gateway?" in capsys.readouterr().err
    gateway.answers["GET /api/tools"] = (404, "<html>")
    assert pml(monkeypatch, "tools") == 1
    assert "HTTP 404" in capsys.readouterr().err


def test_no_gateway_says_how_to_start_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("PML_URL", raising=False)
    assert pml(monkeypatch, "tools", "--url", "http://127.0.0.1:1") == 4
    assert "run `pml up`" in capsys.readouterr().err
    nowhere = ("--url", "http://127.0.0.1:1", "--home", str(tmp_path))
    assert pml(monkeypatch, "status", *nowhere) == 4
    assert f"no stack runs on {tmp_path}" in capsys.readouterr().err


def test_a_decision_is_sent_for_the_workflow(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"POST /api/workflows/{WORKFLOW}/approval"
    gateway.answers[path] = (200, SUCCESS)
    assert pml(monkeypatch, "approvals", "approve", WORKFLOW, "--wait") == 0
    assert "hello" in capsys.readouterr().out
    gateway.answers[path] = (200, {"status": "error", "workflowId": WORKFLOW})
    assert pml(monkeypatch, "approvals", "deny", WORKFLOW) == 0
    assert [body for _, body in gateway.asked] == [
        {"decision": "approve", "wait": True},
        {"decision": "deny", "wait": False},
    ]


def test_what_is_no_workflow_is_not_sent(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pml(monkeypatch, "approvals", "approve", "the-last-one") == 2
    assert "'the-last-one' is not a workflow's id" in capsys.readouterr().err
    assert gateway.asked == []


def test_what_waits_is_listed(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["GET /api/approvals"] = (200, {"approvals": [], "total": 0})
    assert pml(monkeypatch, "approvals", "list") == 0
    assert "nothing waits" in capsys.readouterr().out


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
    assert "false n3 fs:write_file(path: args.folder" in out
    assert "path n1 → d1 → n3" in out
    assert "✗ n3 fs:write_file 5.0 ms" in out


def test_a_capability_is_drawn_with_its_learned_paths(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads((EXAMPLES / "qry.registry.resolve-capability.v1.reply.json").read_text())
    gateway.answers["GET /api/capabilities/fs:ensure_file"] = (200, record)
    assert pml(monkeypatch, "capabilities", "fs:ensure_file") == 0
    out = capsys.readouterr().out
    assert "n1 → d1 → n2" in out
    assert "dominant" in out


def test_hits_are_listed_best_first(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = json.loads((EXAMPLES / "qry.registry.discover.v1.reply.json").read_text())
    gateway.answers["POST /api/discover"] = (200, page)
    assert pml(monkeypatch, "discover", "make a file", "--limit", "2") == 0
    rows = capsys.readouterr().out.splitlines()
    assert "fs:ensure_file" in rows[1]
    assert "fs:write_file" in rows[2]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("execute", "nowhere.ts"), "cannot read nowhere.ts: No such file"),
        (("execute", "-", "--arg", "novalue"), "write it as key=value"),
        (("execute", "-", "--args-json", "{tmp}/list.json"), "must be a JSON object"),
        (("execute", "-", "--args-json", "{tmp}/broken.json"), "broken.json:2:1: not JSON"),
    ],
)
def test_what_was_typed_wrong_is_said_before_anything_is_sent(
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
