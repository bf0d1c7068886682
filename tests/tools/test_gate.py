"""The gate repeats what failed, and believes a failure that repeats."""

import json
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from conftest import PROMISES, ROOT, pytest_collection_modifyitems
from tools.gate import tests as gate
from tools.gate.verdict import MOST_AGAIN, Outcome, first_verdict, flaky, outcome_of

CRASH = {"reprcrash": {"path": "t.py", "lineno": 7, "message": "assert 1 == 2\n  more"}}


def _record(test: str, outcome: str, when: str = "call", **more: object) -> str:
    report: dict[str, object] = {"$report_type": "TestReport", "nodeid": test, "when": when}
    return json.dumps({**report, "outcome": outcome, "keywords": {}, "longrepr": None, **more})


def _failed(*tests: str, when: str = "call", keywords: dict[str, int] | None = None) -> Outcome:
    more = {"longrepr": CRASH, "keywords": keywords or {}}
    return outcome_of(_record(test, "failed", when, **more) for test in tests)


def test_a_session_without_failures_passes() -> None:
    outcome = outcome_of(
        [_record("t.py::a", "passed"), json.dumps({"$report_type": "SessionStart"})]
    )
    assert first_verdict(0, outcome).state == "passed"
    assert outcome.passed == {"t.py::a"}


def test_a_few_failures_are_repeated() -> None:
    outcome = _failed("t.py::a", "t.py::b")
    verdict = first_verdict(1, outcome)
    assert (verdict.state, verdict.again) == ("again", ("t.py::a", "t.py::b"))
    assert outcome.failures["t.py::a"].reason == "t.py:7: assert 1 == 2"


def test_the_first_failure_of_a_test_is_told() -> None:
    lines = [
        _record("t.py::a", "failed", longrepr="long\nValueError: at first"),
        _record("t.py::a", "failed", "teardown", longrepr="ValueError: later"),
    ]
    assert outcome_of(lines).failures["t.py::a"].reason == "ValueError: at first"


@pytest.mark.parametrize(
    ("status", "outcome", "why"),
    [
        (1, _failed("t.py::a", keywords={"promise": 1}), "no second try for promises: t.py::a"),
        (1, _failed("t.py::a", when="???"), "the process died in t.py::a"),
        (2, _failed("t.py::a"), "pytest ended with status 2"),
        (1, Outcome(), "pytest ended with status 1"),
        (5, Outcome(), "pytest ended with status 5"),
        (1, Outcome(uncollected=["t.py"]), "not collected: t.py"),
        (0, Outcome(uncollected=["t.py"]), "not collected: t.py"),
        (
            1,
            _failed(*(f"t.py::{n}" for n in range(MOST_AGAIN + 1))),
            f"{MOST_AGAIN + 1} tests failed, more than {MOST_AGAIN}",
        ),
    ],
)
def test_red_at_once(status: int, outcome: Outcome, why: str) -> None:
    verdict = first_verdict(status, outcome)
    assert (verdict.state, verdict.why) == ("failed", why)


@pytest.mark.parametrize(
    ("status", "second", "passes"),
    [
        (0, outcome_of([_record("t.py::a", "passed")]), True),
        (0, outcome_of([_record("t.py::a", "skipped")]), False),
        (0, outcome_of([_record("t.py::b", "passed")]), False),
        (1, outcome_of([_record("t.py::a", "passed")]), False),
        (1, _failed("t.py::a"), False),
    ],
)
def test_a_second_session_without_a_doubt_makes_it_flaky(
    status: int, second: Outcome, passes: bool
) -> None:
    assert flaky(("t.py::a",), status, second) is passes


@pytest.fixture
def few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of pytest that start in half a second."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin,pytest_reportlog.plugin")


FAILS_ONCE = """
from pathlib import Path
import pytest

def test_good():
    assert Path("good").write_text("once more")

def test_once():
    seen = Path("seen").exists()
    Path("seen").touch()
    Path("good").unlink(missing_ok=True)
    assert seen, "never seen"
"""


def _project(folder: Path, lines: Iterable[str] = (), mark: str = "") -> Path:
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = promise\n")
    code = FAILS_ONCE.replace("def test_once", f"{mark}\ndef test_once")
    (folder / "test_it.py").write_text("\n".join([code, *lines]))
    return folder


@pytest.mark.usefixtures("few_plugins")
def test_a_test_that_fails_once_is_repeated_alone_and_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "cache/flaky.txt"
    assert gate.run(["-n", "1"], _project(tmp_path), log) == 0
    first, second = log.read_text().splitlines()
    assert first == "FLAKY test_it.py::test_once"
    assert second.startswith("  failed first: ")
    assert "never seen" in second
    assert capfd.readouterr().out.endswith(log.read_text())
    assert not (tmp_path / "good").exists(), "only what failed runs again"


@pytest.mark.usefixtures("few_plugins")
def test_a_promise_that_fails_once_is_broken(tmp_path: Path) -> None:
    log = tmp_path / "flaky.txt"
    project = _project(tmp_path, mark="@pytest.mark.promise")
    assert gate.run(["-q"], project, log) == 1
    assert not log.exists()


@pytest.mark.usefixtures("few_plugins")
def test_what_fails_twice_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    project = _project(tmp_path, ["def test_bad(): assert False"])
    assert gate.run(["-q"], project, tmp_path / "flaky.txt") == 1
    assert capfd.readouterr().out.endswith("FAILED, twice: test_it.py::test_bad\n")


def test_promises_exist() -> None:
    assert [each for each in PROMISES if not (ROOT / each).exists()] == []


def test_tests_of_promises_are_marked() -> None:
    marked: list[str] = []

    def item(path: Path) -> pytest.Item:
        return cast(pytest.Item, SimpleNamespace(path=path, add_marker=marked.append))

    pytest_collection_modifyitems([item(Path(__file__)), item(ROOT / "tests/faultsome.py")])
    assert marked == []
    pytest_collection_modifyitems([item(ROOT / "tests/faults/test_time.py")])
    assert marked == ["promise"]


TRACED = """
import sys
import pytest

HERE = sys.gettrace() is not None

@pytest.fixture
def set_up():
    return sys.gettrace()

def test_call(set_up):
    assert HERE and set_up is None and sys.gettrace() is not None

@pytest.mark.no_cover
def test_uncovered(set_up):
    assert set_up is None and sys.gettrace() is None

def test_next(set_up):
    assert set_up is None and sys.gettrace() is not None
"""


def test_coverage_traces_imports_and_calls_of_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    used = "xdist.plugin,pytest_cov.plugin,pytest_reportlog.plugin,tools.gate.tracing"
    monkeypatch.setenv("PYTEST_PLUGINS", used)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "test_it.py").write_text(TRACED)
    status, outcome = gate.session(["-n", "1", "--cov=.", "--cov-report=json"], tmp_path)
    covered = json.loads((tmp_path / "coverage.json").read_text())["files"]["test_it.py"]
    missing: list[int] = covered["missing_lines"]
    assert (status, len(outcome.passed)) == (0, 3)
    lines = TRACED.splitlines()
    assert {lines[at - 1].strip() for at in missing} == {
        "return sys.gettrace()",
        "assert set_up is None and sys.gettrace() is None",
    }
