"""The house rules reject violations."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def _tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/lint/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


schemas = _tool("schemas")
file_length = _tool("file_length")
docstrings = _tool("docstrings")
waits = _tool("waits")

ID: dict[str, object] = {"type": "string"}
KIND: dict[str, object] = {"enum": ["a", "b"]}
OLD: dict[str, object] = {
    "properties": {"id": ID, "kind": KIND},
    "required": ["id"],
    "type": "object",
}
NOTE: dict[str, object] = {"type": "string", "default": ""}


def test_an_added_optional_field_is_compatible() -> None:
    new = {**OLD, "properties": {"id": ID, "kind": KIND, "note": NOTE}}
    assert list(schemas.breaks(OLD, new)) == []


def test_changed_prose_is_compatible() -> None:
    assert list(schemas.breaks(OLD, {**OLD, "title": "Thing", "description": "What it is"})) == []


@pytest.mark.parametrize(
    ("new", "complaint"),
    [
        ({**OLD, "properties": {"id": ID}}, "/kind: removed"),
        ({**OLD, "required": ["id", "kind"]}, "/kind: required now"),
        ({**OLD, "required": []}, "/id: no longer required"),
        (
            {**OLD, "properties": {"id": {"type": "integer"}, "kind": KIND}},
            '/id/type: "string" became "integer"',
        ),
        (
            {**OLD, "properties": {"id": ID, "kind": {"enum": ["a"]}}},
            '/kind/enum: ["a", "b"] became ["a"]',
        ),
    ],
)
def test_an_incompatible_change_is_found(new: object, complaint: str) -> None:
    assert list(schemas.breaks(OLD, new)) == [complaint]


def test_a_change_inside_a_shared_definition_is_found() -> None:
    old = {"$defs": {"Scope": OLD}, "type": "object"}
    new = {"$defs": {"Scope": {**OLD, "required": ["id", "kind"]}}, "type": "object"}
    assert list(schemas.breaks(old, new)) == ["/Scope/kind: required now"]


def test_the_committed_schemas_are_those_of_the_models() -> None:
    assert schemas.main("check") == 0


def test_a_published_message_that_changes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in schemas.FOLDER.glob("*.json"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    victim = tmp_path / "evt.executor.run-finished.v2.json"
    published = json.loads(victim.read_text(encoding="utf-8"))
    published["properties"]["exit_code"] = {"type": "integer"}
    victim.write_text(json.dumps(published), encoding="utf-8")
    monkeypatch.setattr(schemas, "FOLDER", tmp_path)
    for action in ("check", "export"):
        assert schemas.main(action) == 1
        assert "run-finished.v2.json: /exit_code: removed" in capsys.readouterr().err


def test_a_compatible_change_is_exported_and_then_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schemas, "FOLDER", tmp_path)
    assert schemas.main("check") == 1
    assert schemas.main("export") == 0
    assert schemas.main("check") == 0


def test_a_long_file_needs_a_reason(tmp_path: Path) -> None:
    source = tmp_path / "long.py"
    source.write_text("x = 1\n" * 400, encoding="utf-8")
    assert file_length.too_long(source) is None
    source.write_text("x = 1\n" * 401, encoding="utf-8")
    assert "401 lines" in file_length.too_long(source)
    source.write_text("# long on purpose: a table\n" + "x = 1\n" * 401, encoding="utf-8")
    assert file_length.too_long(source) is None


def test_every_tracked_file_is_short_enough() -> None:
    checked = subprocess.run(
        [sys.executable, "tools/lint/file_length.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert checked.stderr == ""


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("What states facts.", True),
        ("Be the gateway for as long as the block runs.", True),
        ("How, and when.", True),
        ("Publishes messages.", False),
        ("Whether the server answers.", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("place", ['"""{}"""', 'class A:\n    """{}"""', 'X = 1\n"""{}"""'])
def test_docstrings_open_with_a_noun_or_a_verb(
    tmp_path: Path, place: str, text: str, refused: bool
) -> None:
    source = tmp_path / "module.py"
    source.write_text(place.format(text), encoding="utf-8")
    assert bool(docstrings.complaints(source)) == refused


REASON = "  # waits: this is the limit"
ELAPSED = "compares elapsed time: assert the fact that it stands for"
SLEEPS = "sleeps: wait for the fact with `eventually`"
LITERAL = "waits for a literal time: PATIENCE_S bounds every wait"


def _waits(code: str, name: str = "tests/test_it.py") -> list[str]:
    return [told for _, told in waits.found(code, name)]


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("import time\nbegan = time.monotonic()\nassert time.monotonic() - began < 5", ELAPSED),
        ("from time import perf_counter as now\nassert now() - 1 < 5", ELAPSED),
        (
            "from time import monotonic\ndef f():\n    a = monotonic()\n"
            "    took = monotonic() - a\n    assert 0 < took < 2, took",
            ELAPSED,
        ),
        (
            "async def f():\n    clock = asyncio.get_running_loop().time\n    spans = []\n"
            "    a = clock()\n    spans.append(clock() - a)\n    assert sorted(spans)[4] < 0.03",
            ELAPSED,
        ),
        (
            "from time import monotonic\ndef f():\n    a = monotonic()\n"
            "    assert monotonic() < a + 5",
            ELAPSED,
        ),
        (
            "from time import monotonic\nasync def f():\n    a = monotonic()\n"
            "    await eventually(lambda: monotonic() - a > 3)",
            ELAPSED,
        ),
        ("import time\ntime.sleep(1)", SLEEPS),
        ("from asyncio import sleep\nasync def f():\n    await sleep(PAUSE)", SLEEPS),
        ("async def f():\n    async with asyncio.timeout(5): ...", LITERAL),
        (
            "LIMIT_S = 60.0\nasync def f():\n    async with asyncio.timeout(3 * LIMIT_S): ...",
            LITERAL,
        ),
        ("async def f():\n    await asyncio.wait_for(g(), 5)", LITERAL),
        ("async def f():\n    await asyncio.wait_for(g(), timeout=5)", LITERAL),
        ("async def f():\n    await eventually(g, within=60.0)", LITERAL),
        ("async def f():\n    await eventually(g, 20)", LITERAL),
        ("subprocess.run(['true'], timeout=60)", LITERAL),
        (
            "async def f():\n    await finish(make_command('x', timeout_s=0.3))",
            "a limit of 0.3 s: a slow machine meets it, too",
        ),
        (
            "def f(http):\n    http.post('/x', json={'code': 'y', 'timeout': 2})",
            "a limit of 2 s: a slow machine meets it, too",
        ),
    ],
)
def test_a_test_that_depends_on_the_machines_speed_is_refused(code: str, complaint: str) -> None:
    assert _waits(code) == [complaint]
    *before, last = code.split("\n")
    assert _waits("\n".join([*before, last + REASON])) == []


@pytest.mark.parametrize(
    "code",
    [
        "async def f():\n    await asyncio.sleep(0)",
        "async def f():\n    async with asyncio.timeout(PATIENCE_S): ...",
        "async def f():\n    await asyncio.wait({g}, timeout=0)",
        "async def f():\n    await execute('x', timeout=60)",
        "from time import time\ndef f():\n    a = time()\n    assert a < end < time()",
        "from time import time\ndef f():\n    assert expires_at > time() + 3000",
        "def f(clock):\n    a = clock()\n    assert clock() - a == 5",
        "async def f():\n    return replace(known, timeout_s=1), ExecuteRequest(timeout=3)",
    ],
)
def test_data_order_and_injected_clocks_are_no_waits(code: str) -> None:
    assert _waits(code) == []


def test_a_reason_for_waiting_is_needed_and_says_something() -> None:
    assert _waits("x = 1" + REASON) == ["a reason for waiting that nothing needs"]
    assert _waits("import time\ntime.sleep(1)  # waits:") == [SLEEPS]


def test_programs_of_tests_may_wait_on_purpose_but_tests_may_not() -> None:
    code = "# waits on purpose: slow tools are its subject\nimport time\ntime.sleep(9)"
    assert _waits(code, "tests/slow_server.py") == []
    assert _waits(code) == ["a test does not wait on purpose: give reasons at single lines"]


def test_the_tests_themselves_wait_for_facts() -> None:
    assert waits.main(["tests/tools"]) == 0
