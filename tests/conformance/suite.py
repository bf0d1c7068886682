"""The official conformance suite of MCP, from npm by Deno, and what of it PML does not pass.

`gaps.json` maps a revision of the protocol to its known failures, each with the reason: a whole
scenario, or one check as `scenario:check`. The test fails for a failure that is not listed, and for
a listed one that passes.
"""

import asyncio
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from deno import find_deno_bin
from pydantic import JsonValue

from pml_gateway.domain.servers.server_config import StdioServer

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
SUITE: Final = "npm:@modelcontextprotocol/conformance@0.2.0-alpha.12"
REVISIONS: Final = ("2026-07-28", "2025-11-25")
LOCK: Final = HERE / "deno.lock"
SERVERS: Final = ("test", "json", "slow", "jobs")
_WITHIN_S: Final = 200.0
_FOLDER: Final = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")

Check = tuple[str, str, str]
"""A scenario, one of its checks, and what went wrong."""


@dataclass(frozen=True)
class Report:
    """The scenarios that ran, and their failed checks."""

    scenarios: frozenset[str]
    failed: tuple[Check, ...]

    def unexpected(self, gaps: Iterable[str]) -> list[Check]:
        """Return the failed checks that no gap covers."""
        known = set(gaps)
        return [
            (scenario, check, why)
            for scenario, check, why in self.failed
            if not {scenario, f"{scenario}:{check}"} & known
        ]

    def stale(self, gaps: Iterable[str]) -> list[str]:
        """Return the gaps that cover no failed check."""
        found = {
            each for scenario, check, _ in self.failed for each in (scenario, f"{scenario}:{check}")
        }
        return [gap for gap in gaps if gap not in found]


def conformance_server(name: str) -> StdioServer:
    """Return the configuration of one of the servers that offer what the scenarios ask for."""
    return StdioServer.model_validate(conformance_servers()[name])


def conformance_servers(names: Iterable[str] = SERVERS) -> dict[str, JsonValue]:
    """Return the entries of servers that offer what the scenarios ask for."""
    return {
        name: {
            "command": sys.executable,
            "args": ["-m", "tests.conformance.upstream", name],
            "env": {"PYTHONPATH": str(ROOT)},
            "trust": "hints",
            "prefix": name != "jobs",
        }
        for name in names
    }


def gaps_of(revision: str) -> Mapping[str, str]:
    """Return the known failures of a revision, each with the reason."""
    known = json.loads((HERE / "gaps.json").read_text(encoding="utf-8"))
    return cast(Mapping[str, str], known[revision])


async def run_suite(url: str, revision: str, folder: Path) -> Report:
    """Run what a revision requires, and what it reports without counting, against the endpoint at
    this URL; results are written to the folder."""
    process = await asyncio.create_subprocess_exec(
        *(find_deno_bin(), "run", "-A", f"--lock={LOCK}", "--frozen", "--quiet", SUITE),
        *("server", "--url", url, "--requirements", revision, "-o", str(folder)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
    )
    try:
        async with asyncio.timeout(_WITHIN_S):
            said = (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    report = await asyncio.to_thread(_report_in, folder)
    ran = said.count("=== Running scenario: ")
    if not ran or len(report.scenarios) != ran:
        raise RuntimeError(f"{len(report.scenarios)} of {ran} scenarios reported:\n{said[-5000:]}")
    return report


def _report_in(folder: Path) -> Report:
    scenarios: set[str] = set()
    failed: list[Check] = []
    for file in sorted(folder.glob("server-*/checks.json")):
        named = _FOLDER.fullmatch(file.parent.name)
        if named is None:
            raise RuntimeError(f"{file.parent.name} names no scenario")
        scenarios.add(named[1])
        failed += [
            (named[1], check["id"], str(check.get("errorMessage")))
            for check in json.loads(file.read_text(encoding="utf-8"))
            if check["status"] == "FAILURE"
        ]
    return Report(frozenset(scenarios), tuple(failed))
