"""`pml approvals elicitation`, and who decided in a client."""

import pytest

from libs.pml_cli.tests.support.fakes import KEY, Gateway, pml

PATH = "/api/approvals/elicitation"
OFF = {"principal": "local", "may_elicit": False, "set_by": None, "set_at": None}
ON = {**OFF, "may_elicit": True, "set_by": "approver:noor", "set_at": "2026-11-21T09:30:00Z"}
WORKFLOW = "4d0b6fb2-acbc-5f0f-9660-00e28ec29407"


def test_the_setting_is_shown_without_the_key_and_set_with_it(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers = {f"GET {PATH}": (200, OFF), f"POST {PATH}": (200, ON)}
    assert pml(monkeypatch, "approvals", "elicitation") == 0
    assert capsys.readouterr().out == "elicitation of local: off\n"
    assert gateway.keys == []
    assert pml(monkeypatch, "approvals", "elicitation", "on") == 0
    said = "elicitation of local: on, set by approver:noor at 2026-11-21T09:30:00Z\n"
    assert capsys.readouterr().out == said
    assert pml(monkeypatch, "approvals", "elicitation", "off") == 0
    sent = [(f"POST {PATH}", {"may_elicit": may}) for may in (True, False)]
    assert gateway.asked[1:] == sent
    assert gateway.keys == [f"POST {PATH} Bearer {KEY}"] * 2
    assert pml(monkeypatch, "approvals", "elicitation", "maybe") == 2


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"client": "desk\x1b", "client_version": "4.2"}, "a form in desk\\x1b 4.2"),
        ({"client": None, "client_version": None}, "a form in a client without a name"),
    ],
)
def test_a_decision_in_a_client_says_which(
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    names: dict[str, object],
    said: str,
) -> None:
    decided = {"outcome": "approved", "decided_by": "local", "shown_digest": "cd" * 32}
    through = {"way": "elicitation", **names}
    approval = {"workflow_id": WORKFLOW, **decided, "decided_through": through}
    gateway.answers[f"GET /api/workflows/{WORKFLOW}/approval"] = (200, approval)
    assert pml(monkeypatch, "approvals", "show", WORKFLOW) == 0
    assert f"approved by local, by {said}" in capsys.readouterr().out
