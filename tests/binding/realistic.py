"""Programs as people and agents write them: from the benchmarks, the examples and the demo, and
every pattern of the analyzer's table."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from bench import analyze as bench_analyze
from bench import type_check as bench_type_check
from pml_common.contracts.tool import JsonObject, ToolDefinition
from services.analyzer.tests.patterns import patterns
from services.analyzer.tests.support.programs import SOURCES_EXAMPLE
from services.analyzer.tests.support.programs import TOOLS as PATTERN_TOOLS
from tests.binding.generated import ARGS

_ROOT: Final = Path(__file__).parents[2]
_INVOICE: Final = '{"id": "7", "total": 12.5, "due": "2020-01-01", "paid": false}'
_ANSWERS: Final[dict[str, JsonValue]] = {
    "fs:list_directory": {
        "entries": [{"kind": "file", "name": "a.json"}, {"kind": "file", "name": "b.json"}],
        "content": "[FILE] a.json\n[FILE] b.json",
    },
    "fs:read_text_file": {"content": _INVOICE},
    "fs:search_files": {"content": "/notes/README.md\n/notes/README.txt"},
    "filesystem:list_directory": "[FILE] a.json\n[FILE] b.json",
    "filesystem:read_file": _INVOICE,
    "git:git_log": "commit 1",
}
_ARGS: Final[JsonObject] = {
    "customer": "acme",
    "path": "/data",
    "accountant": "a@example.org",
    "folder": "/notes",
    "note": "today.md",
    "topic": "notes",
    "text": "hello",
}


@dataclass(frozen=True)
class Realistic:
    """A program, its arguments, and its tools' results."""

    name: str
    code: str
    tools: tuple[ToolDefinition, ...]
    args: JsonObject
    answers: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])


def realistic() -> Iterator[Realistic]:
    """All programs."""
    files = {
        path.name: path.read_text(encoding="utf-8")
        for folder in ("examples", "libs/pml_cli/src/pml_cli/demo")
        for path in sorted((_ROOT / folder).glob("*.ts"))
    }
    benches = {
        "bench/analyze.py": bench_analyze.PROGRAM,
        "bench/analyze.py, short": bench_analyze.SHORT,
        "bench/analyze.py, long": bench_analyze.program(300),
        "bench/type_check.py": bench_type_check.PROGRAM,
    }
    for name, code in (files | benches).items():
        yield Realistic(name, code, _tools(), _ARGS, _ANSWERS)
    yield Realistic("the first example", SOURCES_EXAMPLE, PATTERN_TOOLS, ARGS)
    for pattern in patterns():
        yield Realistic(pattern.id, pattern.code, PATTERN_TOOLS, ARGS)


def _tools() -> tuple[ToolDefinition, ...]:
    names = (*_ANSWERS, *bench_analyze.CALLED, "filesystem:write_file", "fs:create_directory")
    return tuple(
        ToolDefinition(server=name.partition(":")[0], name=name.partition(":")[2])
        for name in dict.fromkeys(names)
    )
