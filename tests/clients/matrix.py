"""The matrix of clients: what each real MCP client can do with PML, tried on a stack of its own.

`uv run python tests/clients/matrix.py [NAME…] [--write]`; `--write` puts the whole table into
docs/clients.md. Each Python client runs in an environment of its own (`uv run --with`), those in
TypeScript in Deno from npm. Exits with 1 where a check fails for which no reason is known.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
from deno import find_deno_bin

ROOT: Final = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # when run as a script

from libs.pml_local.tests.support.harness import eventually  # noqa: E402
from libs.pml_local.tests.support.patience import PATIENCE_S  # noqa: E402
from pml_local.approver import approver_headers  # noqa: E402
from pml_local.composition import StackOptions  # noqa: E402
from pml_local.ports import free_port  # noqa: E402
from pml_local.stack import Stack, embedded_stack  # noqa: E402

PROGRAMS: Final = Path(__file__).parent / "programs"
PAGE: Final = ROOT / "docs" / "clients.md"
CHECKS: Final = {
    "list": "lists tools",
    "run": "runs a program",
    "next": "approval by `next`",
    "form": "approval on a form",
    "told": "hears of a new capability",
    "cancel": "cancels",
}
_WITHIN_S: Final = 240.0

Json = dict[str, Any]


@dataclass(frozen=True)
class Client:
    """A client, the packages that it is tried with, and its program."""

    name: str
    packages: tuple[str, ...]
    program: str
    arguments: tuple[str, ...] = ()

    def command(self, url: str, first: int) -> list[str]:
        """Return the command that tries it; its numbers begin with `first`."""
        told = [url, str(first), *self.arguments]
        path = str(PROGRAMS / self.program)
        if path.endswith(".ts"):
            return [
                find_deno_bin(),
                "run",
                "--quiet",
                "--no-lock",
                "--no-config",
                "-A",
                path,
                *told,
            ]
        packages = [each for one in self.packages for each in ("--with", one)]
        return ["uv", "run", "--quiet", "--no-project", *packages, "python", path, *told]


CLIENTS: Final = (
    Client("Python SDK 2.x", ("mcp>=2.3,<3",), "python_sdk_2.py"),
    Client("Python SDK 2.x as of 2025-11-25", ("mcp>=2.3,<3",), "python_sdk_2.py", ("--legacy",)),
    Client("Python SDK 1.x", ("mcp>=1.30,<2",), "python_sdk_1.py"),
    Client("TypeScript SDK 2.x", (), "typescript_sdk_2.ts"),
    Client("TypeScript SDK 1.x", (), "typescript_sdk_1.ts"),
    Client("fastmcp", ("fastmcp>=4,<5",), "fastmcp_client.py"),
    Client('fastmcp, `mode="legacy"`', ("fastmcp>=4,<5",), "fastmcp_client.py", ("--legacy",)),
    Client("langchain-mcp-adapters", ("langchain-mcp-adapters>=0.3,<0.4",), "langchain_client.py"),
    Client("openai-agents", ("openai-agents>=0.24,<0.25",), "openai_agents.py"),
)


@dataclass(frozen=True)
class Outcome:
    """Whether a client passed a check; None: it cannot, as the note says."""

    ok: bool | None
    note: str


class Person:
    """The person whom a client's program asks for."""

    def __init__(self, stack: Stack, http: httpx2.AsyncClient) -> None:
        self._headers = approver_headers(stack.approver_key)
        self._http = http

    async def let_forms_count(self) -> None:
        """Let the user of a client decide on its forms."""
        path = "/api/approvals/elicitation"
        answer = await self._http.post(path, json={"may_elicit": True}, headers=self._headers)
        answer.raise_for_status()

    async def approve(self, workflow_id: str) -> None:
        """Approve a workflow."""
        path = f"/api/workflows/{workflow_id}/approval"
        await self._http.post(path, json={"decision": "approve"}, headers=self._headers)

    async def ended_as(self, intent: str, kind: str) -> bool:
        """Whether the workflow with this intent ends so within a few seconds."""

        async def ended() -> Json | None:
            listed = (await self._http.get("/api/workflows")).json()["workflows"]
            return next(
                (one for one in listed if one["intent"] == intent and one["error"] is not None),
                None,
            )

        try:
            found: Json = await eventually(ended)
        except AssertionError:
            return False
        return found["error"]["kind"] == kind


async def tried(client: Client, url: str, first: int, person: Person) -> dict[str, Outcome]:
    """Try a client."""
    process = await asyncio.create_subprocess_exec(
        *client.command(url, first),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=PROGRAMS,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    complaint = asyncio.create_task(process.stderr.read())
    found: dict[str, Outcome] = {}
    stopped = True
    try:
        async with asyncio.timeout(_WITHIN_S):
            async for line in process.stdout:
                if not line.startswith(b"{"):
                    continue
                told: Json = json.loads(line)
                if "approve" in told:
                    await person.approve(told["approve"])
                elif "ended" in told:
                    stopped = await person.ended_as(told["ended"], "cancelled")
                    process.stdin.write(b"\n")
                    await process.stdin.drain()
                else:
                    found[told["check"]] = Outcome(told["ok"], told["note"])
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    if not stopped and found.get("cancel", Outcome(None, "")).ok:
        found["cancel"] = Outcome(ok=False, note="the workflow went on")
    said = (await complaint).decode(errors="replace").strip().splitlines()
    why = said[-1] if said else "its program said nothing"
    return {name: found.get(name, Outcome(ok=False, note=why)) for name in CHECKS}


@asynccontextmanager
async def stack_with_tools(folder: Path) -> AsyncGenerator[tuple[Stack, httpx2.AsyncClient]]:
    """Run a stack with the server that counts its calls."""
    server = ROOT / "tests" / "e2e" / "counting_server.py"
    entry = {"command": sys.executable, "args": [str(server), str(folder)], "trust": "hints"}
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"counting": entry}}), encoding="utf-8")
    options = StackOptions(home=folder / "data", gateway_port=free_port(), mcp_servers=config)
    async with (
        embedded_stack(options) as stack,
        httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http,
    ):

        async def known() -> bool:
            found = await http.post("/api/discover", json={"intent": "step", "limit": 50})
            return any(hit["id"] == "counting:step" for hit in found.json().get("hits", ()))

        await eventually(known)
        yield stack, http


async def main(names: Sequence[str], *, write: bool) -> int:
    """Try the clients; print the table."""
    chosen = [each for each in CLIENTS if not names or each.name in names]
    rows: dict[str, dict[str, Outcome]] = {}
    with tempfile.TemporaryDirectory(prefix="pml-clients-", ignore_cleanup_errors=True) as name:
        async with stack_with_tools(Path(name)) as (stack, http):
            person = Person(stack, http)
            await person.let_forms_count()
            for number, client in enumerate(chosen):
                url, first = f"{stack.url}/mcp", 3000 + 10 * number
                rows[client.name] = await tried(client, url, first, person)
                print(_line(client.name, rows[client.name]), flush=True)
    table = table_of(rows)
    print(f"\n{table}")
    if write and not names:
        page = PAGE.read_text(encoding="utf-8")
        page = re.sub(r"(?s)(<!-- matrix -->\n).*(<!-- end -->)", rf"\1{table}\n\2", page)
        PAGE.write_text(page, encoding="utf-8")
    return int(any(each.ok is False for row in rows.values() for each in row.values()))


def table_of(rows: dict[str, dict[str, Outcome]]) -> str:
    """Build the table in Markdown, with the reasons for what a client cannot do below it."""
    lines = [f"| client | {' | '.join(CHECKS.values())} |", "| --- |" + " --- |" * len(CHECKS)]
    lines += [_line(name, row) for name, row in rows.items()]
    notes = [
        f"- {name}, {CHECKS[check]}: {outcome.note}"
        for name, row in rows.items()
        for check, outcome in row.items()
        if not outcome.ok
    ]
    return "\n".join([*lines, "", *notes, ""])


def _line(name: str, row: dict[str, Outcome]) -> str:
    marks = {True: "yes", False: "**no**", None: "—"}
    return f"| {name} | {' | '.join(marks[row[check].ok] for check in CHECKS)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What each MCP client can do with PML.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.names, write=given.write)))
