"""Analysis of many programs in one process."""

import asyncio
import io
import json
import sys
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import pml
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_analysis.analysis import Rejection
from pml_cli.commands.program_lines import answers
from pml_common.contracts.structure import Diagnostic

TOOLS = [{"server": "fs", "name": "list", "annotations": {"read_only": True}}]
CALL = "await mcp.fs.list({});"


def line(id_: object, code: object) -> bytes:
    return json.dumps({"id": id_, "code": code}).encode() + b"\n"


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(TOOLS), encoding="utf-8")
    return str(file)


def test_every_line_has_its_answer(
    catalog: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        line("a", CALL),
        line({"any": "id"}, "const = 1;"),
        b"no json\n",
        b"[1]\n",
        line(7, None),
        b"\n",
        b"\xff\n",
        b'{"id": NaN, "code": ""}\n',
        b"[" * 100_000 + b"\n",
        line("lone", 'const a = "\ud800";'),
        line("last", "return \u00e9;")[:-1],
    ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"".join(lines))))
    assert pml(monkeypatch, "analyze", "--stdin-jsonl", "--catalog", catalog) == 0
    found = [json.loads(answer) for answer in capsys.readouterr().out.splitlines()]
    assert [answer["id"] for answer in found] == [
        "a",
        {"any": "id"},
        None,
        None,
        7,
        None,
        None,
        None,
        None,
        "lone",
        "last",
    ]
    read, rejected, *bad = found[:9]
    assert read["static_structure"]["nodes"][0]["tool"] == "fs:list"
    assert rejected["static_structure"] is None
    assert rejected["diagnostics"]
    assert [answer["error"]["line"] for answer in bad] == [3, 4, 5, 6, 7, 8, 9]
    assert {answer["error"]["kind"] for answer in bad} == {"usage"}
    assert [answer["error"]["message"].split(":")[0] for answer in bad] == [
        "not JSON",
        "expected an object",
        "`code` is missing or no text",
        "not JSON",
        "not UTF-8 text (byte 0)",
        "not JSON that can be read",
        "not JSON that can be read",
    ]
    assert found[9]["diagnostics"][0]["message"].startswith("This is half a character")
    assert found[10]["instrumented"].endswith("return \u00e9;")


def test_an_internal_error_affects_only_its_own_line(capsys: pytest.CaptureFixture[str]) -> None:
    fine = Rejection((Diagnostic(severity="error", message="no", line=1, column=1),))

    def read(code: str) -> Rejection:
        if code == "bad":
            raise LookupError("a fault of ours")
        return fine

    first, second = map(json.loads, answers(read, [line(1, "bad"), line(2, "good")]))
    error = {"kind": "internal", "message": "LookupError: a fault of ours", "line": 1}
    assert first == {"id": 1, "error": error}
    assert second["diagnostics"][0]["message"] == "no"
    assert "a fault of ours" in capsys.readouterr().err


async def test_each_answer_comes_at_once(catalog: str) -> None:
    code = "from pml_cli.app import main; main()"
    words = ("-c", code, "analyze", "--stdin-jsonl", "--catalog", catalog)
    pipe = asyncio.subprocess.PIPE
    async with asyncio.timeout(PATIENCE_S):
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, stdin=pipe, stdout=pipe, limit=1 << 20
        )
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(line(number, CALL))
            await process.stdin.drain()
            assert json.loads(await process.stdout.readline())["id"] == number
        process.stdin.close()
        assert await process.wait() == 0
