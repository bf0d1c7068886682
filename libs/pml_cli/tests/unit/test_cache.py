"""`pml cache`, and the display of cached results, against a scripted gateway."""

import json
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import Gateway, pml

LOOK = "/api/capabilities/fs:look"
EXAMPLES = Path(__file__).parents[3] / "pml_common/examples"


def record(**cache: object) -> dict[str, object]:
    stored = {"policy": "none", "ttl_s": None, "force": False, "revision": 0, **cache}
    return {"name": "fs:look", "cache": stored}


@pytest.mark.parametrize(
    ("words", "sent", "stored", "shown"),
    [
        (["none"], {"policy": "none"}, {}, "fs:look: not cached"),
        (
            ["memoize", "--ttl", "600"],
            {"policy": "memoize", "ttl_s": 600},
            {"policy": "memoize", "ttl_s": 600},
            "fs:look: memoize, for 600 s",
        ),
        (
            ["persistent", "--force"],
            {"policy": "persistent", "force": True},
            {"policy": "persistent", "force": True},
            "persistent, until its code or this policy changes, although it may have effects",
        ),
    ],
)
def test_a_policy_is_sent_as_chosen_and_the_new_policy_is_shown(
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    sent: dict[str, object],
    stored: dict[str, object],
    shown: str,
) -> None:
    gateway.answers[f"PATCH {LOOK}"] = (200, record(**stored))
    assert pml(monkeypatch, "cache", "fs:look", *words) == 0
    assert gateway.asked == [(f"PATCH {LOOK}", {"cache": sent})]
    assert shown in capsys.readouterr().out


def test_without_a_policy_the_current_one_is_shown(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers[f"GET {LOOK}"] = (200, record())
    assert pml(monkeypatch, "cache", "fs:look", "--json") == 0
    assert json.loads(capsys.readouterr().out) == record()
    assert pml(monkeypatch, "cache", "fs:look", "--ttl", "5") == 2
    assert "--ttl and --force are for a policy" in capsys.readouterr().err
    assert len(gateway.asked) == 1


def test_a_refusal_shows_the_gateways_message(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = {"kind": "conflict", "message": "fs:look calls fs:write, which is not read-only"}
    gateway.answers[f"PATCH {LOOK}"] = (409, {"error": error})
    assert pml(monkeypatch, "cache", "fs:look", "memoize") == 1
    assert "fs:look calls fs:write" in capsys.readouterr().err


def test_an_answer_from_the_cache_says_so(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = {"status": "success", "result": 1, "workflow_id": "w-1", "cached": True}
    answer |= {"notices": ["fs:old was renamed to fs:look; use the new name"]}
    gateway.answers["POST /api/execute"] = (200, answer)
    assert pml(monkeypatch, "execute", "--capability", "fs:look") == 0
    out, err = capsys.readouterr()
    assert "cached: nothing ran" in out
    assert "workflow w-1" in out
    assert "use the new name" in err


def test_a_capability_is_shown_with_its_policy(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = EXAMPLES / "qry.registry.resolve-capability.v2.reply.json"
    found = json.loads(example.read_text(encoding="utf-8"))
    gateway.answers[f"GET {LOOK}"] = (200, found)
    assert pml(monkeypatch, "capabilities", "fs:look") == 0
    assert "cache: memoize, for 600 s" in capsys.readouterr().out
