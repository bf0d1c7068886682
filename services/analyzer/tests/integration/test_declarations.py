"""Declarations, checked by Deno itself."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pydantic import JsonValue

import pml_checker
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_analysis.syntax.member_names import is_member
from pml_analysis.typing.declarations import as_module, declarations
from pml_analysis.typing.type_text import quoted
from pml_common.contracts.tool import JsonObject, ToolDefinition
from services.analyzer.tests.support.programs import schema, tool
from services.analyzer.tests.support.schema_strategy import SCHEMAS
from services.analyzer.tests.support.schemas import CATALOGUE, hostile_tools, livemcpbench

pytestmark = pytest.mark.integration

GENERATED = 2 * settings().max_examples
DENO = Path(sys.executable).with_name("deno")
SANDBOX_OPTIONS = Path(pml_checker.__file__).with_name("compiler_options") / "deno.json"


def complaints(folder: Path, *options: str, **files: str) -> str:
    """Return the complaints of `deno check` about files, by their names without `.ts`; nothing when
    it accepts them."""
    for name, text in files.items():
        (folder / f"{name.replace('_', '.')}.ts").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [
            DENO,
            "check",
            "--quiet",
            "--no-remote",
            "--no-npm",
            *options,
            *sorted(folder.glob("*.ts")),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={"DENO_DIR": str(folder / "cache"), "NO_COLOR": "1"},
        cwd=folder,
    )
    assert done.returncode == (1 if "[ERROR]" in done.stderr else 0), done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="Deno's own options", marks=pytest.mark.nightly),
        pytest.param(("--config", str(SANDBOX_OPTIONS)), id="sandbox"),
    ],
)
class TestDeno:
    """With Deno's own declarations, and with those of the sandbox."""

    def test_it_accepts_what_real_servers_send(
        self, options: tuple[str, ...], tmp_path: Path
    ) -> None:
        if not CATALOGUE.exists():
            pytest.skip(f"the tools of LiveMCPBench are not at {CATALOGUE}")
        tools = livemcpbench()
        assert len({tool.tool_id for tool in tools}) == 527
        text = declarations(tools)
        assert complaints(tmp_path, *options, tools_d=text, use=_calls(tools)) == ""

    def test_it_accepts_what_hostile_servers_send(
        self, options: tuple[str, ...], tmp_path: Path
    ) -> None:
        tools = hostile_tools()
        text = declarations(tools, {"fs_read": tools[0], "fs:read": tools[0]})
        assert complaints(tmp_path, *options, tools_d=text, use=_calls(tools)) == ""

    def test_it_accepts_whatever_a_schema_says(
        self, options: tuple[str, ...], tmp_path: Path
    ) -> None:
        tools = [
            ToolDefinition(server="s", name=f"t{n}", input_schema=found, output_schema=found)
            for n, found in enumerate(_generated())
        ]
        assert complaints(tmp_path, *options, tools_d=declarations(tools)) == ""

    def test_it_still_knows_what_is_wrong(self, options: tuple[str, ...], tmp_path: Path) -> None:
        text = declarations([tool("fs:read", "path", gives=schema("content"))])
        use = "const n: number = (await mcp.fs.read({ path: 1 })).content;\nexport { n };\n"
        told = complaints(tmp_path, *options, tools_d=text, use=use)
        assert "Type 'string' is not assignable to type 'number'" in told
        assert "Type 'number' is not assignable to type 'string'" in told

    def test_it_accepts_them_as_a_module(self, options: tuple[str, ...], tmp_path: Path) -> None:
        text = as_module(declarations(hostile_tools()))
        assert complaints(tmp_path, *options, tools_d=text) == ""


@cache
def _generated() -> list[JsonObject]:
    found: list[JsonObject] = []

    @given(SCHEMAS)
    @settings(
        max_examples=GENERATED,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    def collect(schema: JsonValue) -> None:
        assert isinstance(schema, dict)
        found.append(schema)

    collect()
    return found


def _calls(tools: list[ToolDefinition]) -> str:
    """Write a module that calls every tool in every way that it can be called, with anything."""
    ids = [tool.tool_id for tool in tools]
    return (
        '/// <reference path="./tools.d.ts" />\ndeclare const anything: any;\n'
        + "".join(
            f"await mcp[{quoted(tool.server)}][{quoted(tool.name)}](anything);\n"
            for tool in tools
            if tool.server != "call" and is_member(tool.server, tool.name)
        )
        + "".join(f"await mcp.call({quoted(one)}, anything);\n" for one in ids)
        + "export {};\n"
    )
