"""Helpers for tests of type checkers."""

import sys
from collections.abc import Sequence
from pathlib import Path

from pml_checker.checker_process import CheckerCommand
from pml_checker.deno_checker import CheckerLimits
from pml_checker.type_check import TypeChecker
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.tool import ToolDefinition
from services.analyzer.tests.support.programs import schema, tool

COMMAND = CheckerCommand(str(Path(sys.executable).with_name("deno")))
PATIENT = CheckerLimits(patience_s=30)
TOOLS = (
    tool("fs:read", "path", gives=schema("content"), read_only=True, limit="number"),
    tool("fs:write", "path", "content"),
)
ENDLESS = 'type N<T extends any[]> = T["length"] extends 1e6 ? T : N<[...T, 1]>;let q: N<[]> = 1;'
"""Types that take the compiler seconds, then more memory than it has."""


async def complaints(
    checker: TypeChecker,
    code: str,
    free: Sequence[str] = (),
    tools: Sequence[ToolDefinition] = TOOLS,
) -> list[str]:
    """Return `line:column message` of every error; there may be nothing else."""
    found = await checker.check(code, free, tools)
    assert {told.severity for told in found} <= {"error"}, found
    return [f"{told.line}:{told.column} {told.message}" for told in found]


def why_unchecked(found: Sequence[Diagnostic]) -> str:
    """Return the one warning about a program that was not checked."""
    (told,) = found
    assert (told.severity, told.line, told.column) == ("warning", 1, 1)
    assert told.message.startswith("Types were not checked: ")
    return told.message
