"""`make compose-demo`: the main job through the proxy, over REST and MCP, on a real MCP server.

A program that reads runs at once. One that writes waits, is approved with the approver's key, and
becomes a capability, which is found by intent and called by name. The trace backend must have each
of the five services in the trace of that run. Ends with 1 at the first step that fails.
"""

import asyncio
import secrets
import sys
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from mcp import Client as McpClient

from pml_cli.client import Client
from pml_cli.demo.narrator import DemoFailed, Narrator
from pml_cli.demo.session import Answer, Session, until
from pml_cli.errors import CommandError
from pml_common.contracts.catalog import SERVICES
from pml_common.contracts.registry import CapabilityHit
from pml_local.approver import approver_headers
from tools.compose.project import ComposeFailed, Project
from tools.compose.secrets import approver_key
from tools.compose.traces import TraceBackend, backend_of
from tools.compose.up import up

READ = "return await mcp.notes.list_notes({});"
KEEP = """\
const before = await mcp.notes.read_note({ name: args.name });
await mcp.notes.write_note({ name: args.name, text: args.text });
return { before, after: args.text };
"""
NAME, TOOL = "notes:keep", "cap_notes_keep"
INTENT = "keep a text as a note, and return what the note said before"
OTHER_WORDS = "write down something to remember"
NEEDED = frozenset(f"notes:{name}" for name in ("list_notes", "read_note", "write_note"))
CONNECTED_WITHIN_S, TRACED_WITHIN_S, LISTED_WITHIN_S = 60.0, 60.0, 30.0


def main() -> int:
    """Start the stack with the demo's server and do all steps."""
    try:
        project = up(demo=True)
        narrator = Narrator()
        url, traces = project.address("proxy", 8080), trace_backend(project)
        Demo(Client(url), narrator, traces).play()
        narrator.console.print(
            f"\nDone: {narrator.checks} checks passed in {narrator.seconds:.1f} s"
        )
    except (ComposeFailed, CommandError) as error:
        print(f"compose-demo failed: {error}", file=sys.stderr)
        return 1
    return 0


def trace_backend(project: Project) -> TraceBackend:
    """Return the stack's trace backend, behind the proxy."""
    stand_in = any(file.name == "compose.stand-ins.yml" for file in project.files)
    return backend_of(project.address("proxy", 16686), stand_in=stand_in)


class Demo:
    """The steps, each checked. Methods raise CommandError."""

    def __init__(self, client: Client, narrator: Narrator, traces: TraceBackend) -> None:
        self._client = client
        self._narrator = narrator
        self._traces = traces
        self._session = Session(client, approver_headers(approver_key()))
        self._note = f"demo-{secrets.token_hex(4)}"

    def play(self) -> None:
        """Do all steps in order."""
        step = self._narrator.step
        with step("The gateways have the tools of the server"):
            tools = until(self._tools, "the tools are known", CONNECTED_WITHIN_S, self._errors)
            self._narrator.check(True, f"notes: {sum(t.startswith('notes:') for t in tools)} tools")
        with step("A program that reads runs at once"):
            answer = self._session.execute({"code": READ, "intent": "list all notes"})
            self._succeeded(answer)
        with step("One that writes waits for approval, is approved with the key, and runs"):
            trace_id = self._write()
        with step("Its capability is found by intent, and called by name"):
            self._find_and_call()
        with step("The same over MCP"):
            asyncio.run(self._over_mcp())
        with step(f"The trace of the run that wrote, in {self._traces.name}"):
            self._traced(trace_id)

    def _tools(self) -> frozenset[str] | None:
        tools = self._session.tools()
        return tools if tools >= NEEDED else None

    def _errors(self) -> str:
        return self._session.server_errors()

    def _write(self) -> str:
        trace_id = secrets.token_hex(16)
        text = "Water the plants."
        args = {"name": self._note, "text": text}
        traced = {"traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-01"}
        request = {"code": KEEP, "intent": INTENT, "name": NAME, "update": True, "args": args}
        asked = Answer.model_validate(self._client.post("/api/execute", request, traced))
        self._asks(asked)
        self._narrator.check(self._read() == "", "nothing was written before the approval")
        self._succeeded(self._session.approve(asked.workflow_id))
        self._narrator.check(self._read() == text, f"the note {self._note} says {text!r}")
        return trace_id

    def _find_and_call(self) -> None:
        found = until(self._found, f"{NAME} is found", LISTED_WITHIN_S)
        self._narrator.check(True, f"{OTHER_WORDS!r} finds {found.name}, {found.score:.2f}")
        args = {"name": self._note, "text": "Call the plumber."}
        asked = self._session.execute({"capability": NAME, "args": args})
        self._asks(asked)
        answer = self._session.approve(asked.workflow_id)
        self._succeeded(answer)
        before = answer.result.get("before") if isinstance(answer.result, dict) else None
        self._narrator.check(
            "Water the plants." in str(before), "the call by name saw what the program wrote"
        )

    def _found(self) -> CapabilityHit | None:
        hits = self._session.discover(OTHER_WORDS).hits
        return next((h for h in hits if isinstance(h, CapabilityHit) and h.name == NAME), None)

    async def _over_mcp(self) -> None:
        async with McpClient(f"{self._client.url}/mcp") as client:
            read = await client.call_tool("pml_execute", {"code": READ})
            self._narrator.check(not read.is_error, "a program that reads runs", read.content)
            found = await client.call_tool("pml_discover", {"intent": OTHER_WORDS})
            fact = f"pml_discover finds {NAME}"
            self._narrator.check(NAME in str(found.structured_content), fact, found.content)
            args: dict[str, Any] = {"name": self._note, "text": "Feed the cat."}
            asked = await client.call_tool(TOOL, args)
            waiting = _workflow_of(asked.structured_content)
            self._narrator.check(waiting is not None, f"{TOOL} waits for approval", asked.content)
            if waiting is not None:
                self._succeeded(await asyncio.to_thread(self._session.approve, waiting))
            again = await client.call_tool(TOOL, args)
            self._narrator.check(
                not again.is_error, "called again, it has its result", again.content
            )
        self._narrator.check(self._read() == "Feed the cat.", "the note says so")

    def _traced(self, trace_id: str) -> None:
        wanted = set(SERVICES)
        seen: set[str] = set()

        def whole() -> int | None:
            services, spans = self._traces.services(trace_id)
            seen.update(services)
            return spans if services >= wanted else None

        spans = until(
            whole, "all services are in it", TRACED_WITHIN_S, lambda: f"it has {sorted(seen)}"
        )
        self._narrator.check(True, f"{spans} spans of {', '.join(sorted(seen))}")
        self._narrator.say(self._traces.page(trace_id))

    def _read(self) -> str:
        code = "return await mcp.notes.read_note({ name: args.name });"
        answer = self._session.execute({"code": code, "args": {"name": self._note}})
        if answer.status != "success":
            raise DemoFailed(f"the note cannot be read: {answer}")
        result = answer.result
        return str(result.get("result")) if isinstance(result, dict) else str(result)

    def _succeeded(self, answer: Answer) -> None:
        self._narrator.check(answer.status == "success", "it succeeded", answer.error)

    def _asks(self, answer: Answer) -> None:
        waits = answer.status == "approval_required" and answer.approval is not None
        self._narrator.check(waits, "it waits for approval", answer)


def _workflow_of(structured: Mapping[str, Any] | None) -> UUID | None:
    """Find the id of the workflow that waits in an answer over MCP."""
    found = None if structured is None else structured.get("workflowId")
    return None if found is None else UUID(str(found))


if __name__ == "__main__":
    sys.exit(main())
