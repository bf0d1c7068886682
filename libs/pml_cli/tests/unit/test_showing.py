"""Display of approvals, and the digest sent with the decision."""

import pytest

from libs.pml_cli.tests.support.fakes import Gateway, pml

WORKFLOW = "4d0b6fb2-acbc-5f0f-9660-00e28ec29407"
PATH = f"/api/workflows/{WORKFLOW}/approval"
DIGEST = "cd" * 32
CALLS: list[dict[str, object]] = [
    {
        "node_id": "n1",
        "tool": "fs:read",
        "verdict": "allow",
        "line": 1,
        "column": 7,
        "how_often": "once",
        "arguments": [
            {"name": "path", "kind": "caller", "words": "the caller's path", "text": "7"}
        ],
    },
    {
        "node_id": "n2/n1",
        "tool": "fs:write",
        "verdict": "ask",
        "within": "notes:keep",
        "line": 3,
        "column": None,
        "how_often": "any number of times",
        "why": "path was to be another value",
        "arguments": [
            {
                "name": "path",
                "kind": "literal",
                "words": "literal",
                "text": '"/home/…(12,345 characters, sha256 ab12…)…/x"',
                "cut": {"length": 12_345, "sha256": "ab12"},
                "marks": ["absolute path"],
            },
            {
                "name": "...opts",
                "kind": "spread",
                "words": "may set mode",
                "parts": [
                    {
                        "name": "",
                        "kind": "result",
                        "words": "from some result of n1",
                        "text": "n1.o",
                    }
                ],
            },
            {"name": "text", "kind": "computed", "words": "computed when it runs", "text": "a[b]"},
        ],
    },
]
APPROVAL: dict[str, object] = {
    "workflow_id": WORKFLOW,
    "approval_id": "a-1",
    "begun": False,
    "outcome": None,
    "calls": CALLS,
    "dynamic_calls": [{"expression": "mcp.call(x)", "line": 9, "column": 1}],
    "complete": False,
    "whole": False,
    "shown_digest": DIGEST,
    "reasons": ["fs:write may change things."],
}


@pytest.fixture
def asked(gateway: Gateway) -> Gateway:
    gateway.answers[f"GET {PATH}"] = (200, APPROVAL)
    gateway.answers[f"POST {PATH}"] = (200, {"status": "running", "workflow_id": WORKFLOW})
    gateway.answers["GET /api/approvals"] = (
        200,
        {"approvals": [{**APPROVAL, "expires_at": "later"}], "total": 1},
    )
    return gateway


EXPECTED = (
    "✓ n1 fs:read  line 1:7, once",
    "path = 7  the caller's path",
    "? n2/n1 fs:write  line 3 in notes:keep, any number of times",
    "path was to be another value",
    'path = "/home/…(12,345 characters, sha256 ab12…)…/x"  literal  ! absolute path  cut, 12,345 '
    "characters: --full",
    "...opts = may set mode",
    "or n1.o  from some result of n1",
    "text = a[b]  computed when it runs",
    "? line 9: mcp.call(x), known when it runs",
    "there are more calls than can be shown",
)


@pytest.mark.parametrize("words", [("show", WORKFLOW), ("list",)])
def test_every_call_is_shown_with_every_argument(
    asked: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    assert pml(monkeypatch, "approvals", *words) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in EXPECTED if line not in lines] == []
    assert asked.keys == [], "looking needs no key"


CHANGED = {"notices": ["The fence [x] was taken off."], "code": "const a = [1];\nreturn a;"}


@pytest.mark.parametrize("words", [("show", WORKFLOW), ("list",), ("approve", WORKFLOW)])
def test_what_runs_is_shown_where_the_program_was_changed(
    asked: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    approval = {**APPROVAL, **CHANGED, "expires_at": "later"}
    asked.answers[f"GET {PATH}"] = (200, approval)
    asked.answers["GET /api/approvals"] = (200, {"approvals": [approval], "total": 1})
    assert pml(monkeypatch, "approvals", *words) == 0
    shown = capsys.readouterr()
    lines = (shown.err if words[0] == "approve" else shown.out).splitlines()
    at = lines.index("  changed The fence [x] was taken off.")
    assert lines[at + 1 : at + 4] == ["  what runs", "    const a = [1];", "    return a;"]


def test_a_program_that_runs_as_it_was_sent_is_shown_in_full_alone(
    asked: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.answers[f"GET {PATH}"] = (200, {**APPROVAL, **CHANGED, "notices": []})
    assert pml(monkeypatch, "approvals", "show", WORKFLOW) == 0
    assert "return a;" not in capsys.readouterr().out
    assert pml(monkeypatch, "approvals", "show", WORKFLOW, "--full") == 0
    assert "  what runs\n    const a = [1];\n    return a;\n" in capsys.readouterr().out


def test_an_answer_that_waits_shows_what_runs_and_each_notice_once(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = {"id": "a-1", "reasons": [], "code": CHANGED["code"], "expires_at": "later"}
    answer = {"status": "approval_required", "workflow_id": WORKFLOW, "approval": waits}
    gateway.answers["POST /api/execute"] = (200, {**answer, "notices": CHANGED["notices"]})
    assert pml(monkeypatch, "execute", "--capability", "x:y") == 3
    shown = capsys.readouterr()
    assert "  what runs\n    const a = [1];\n    return a;\n" in shown.out
    assert (shown.out + shown.err).count("The fence [x] was taken off.") == 1


def test_values_are_requested_whole_or_cut(
    asked: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pml(monkeypatch, "approvals", "show", WORKFLOW) == 0
    assert f"shown {DIGEST}" in capsys.readouterr().out
    assert pml(monkeypatch, "approvals", "show", WORKFLOW, "--full", "--json") == 0
    assert [line for line, _ in asked.asked] == [
        f"GET {PATH}?whole=false",
        f"GET {PATH}?whole=true",
    ]


def test_an_approver_is_shown_the_approval_and_the_decision_has_its_digest(
    asked: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pml(monkeypatch, "approvals", "approve", WORKFLOW, "--covers", "node") == 0
    assert "? n2/n1 fs:write" in capsys.readouterr().err
    assert asked.asked[-1][1] == {
        "decision": "approve",
        "wait": False,
        "covers": "node",
        "shown": {"digest": DIGEST, "whole": False},
    }


def test_a_decision_may_name_an_earlier_digest(
    asked: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("approvals", "approve", WORKFLOW, "--shown", DIGEST, "--full")
    assert pml(monkeypatch, *words) == 0
    ((_, body),) = asked.asked
    assert body == {
        "decision": "approve",
        "wait": False,
        "shown": {"digest": DIGEST, "whole": True},
    }


@pytest.mark.parametrize("words", [("approve", "--json"), ("deny",)])
def test_without_a_display_no_digest_is_sent(
    asked: Gateway, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    assert pml(monkeypatch, "approvals", words[0], WORKFLOW, *words[1:]) == 0
    ((_, body),) = asked.asked
    assert body == {"decision": words[0], "wait": False}


def test_the_gateway_refuses_what_is_already_decided(
    asked: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    over = {**APPROVAL, "outcome": "approved", "decided_by": "approver:noor"}
    asked.answers[f"GET {PATH}"] = (200, over)
    asked.answers[f"POST {PATH}"] = (409, {"error": {"kind": "conflict", "message": "already"}})
    assert pml(monkeypatch, "approvals", "approve", WORKFLOW) == 1
    assert "shown" not in str(asked.asked[-1][1])
    assert pml(monkeypatch, "approvals", "show", WORKFLOW) == 0
    assert "approved by approver:noor" in capsys.readouterr().out
