"""The demo's story: one program, from unknown code to a capability found by its meaning."""

from collections.abc import Sequence
from importlib.resources import files
from uuid import UUID

from rich.syntax import Syntax

from pml_cli.demo.narrator import DemoFailed, Narrator
from pml_cli.demo.runs import Branch, Run, Runner, runs_table
from pml_cli.demo.servers import DemoServer
from pml_cli.demo.session import Answer, Session, until
from pml_cli.demo.workspace import COMMIT, Workspace
from pml_cli.markup import escape
from pml_cli.render.learning import learned_paths
from pml_cli.render.structure import structure_tree
from pml_cli.render.trace import trace_tree
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.learner import ExecutionTrace
from pml_common.contracts.registry import CapabilityHit
from pml_common.contracts.structure import TaskNode

NAME = "notes:ensure"
INTENT = "make sure that a note exists in the project folder: read it, or write it if it is missing"
OTHER_WORDS = "open my memo, and start a fresh one when there is none yet"
MONDAY, TUESDAY = "Water the plants.", "Call the plumber."
NEEDED = frozenset(
    {
        "git:git_log",
        "fs:search_files",
        "fs:read_text_file",
        "fs:create_directory",
        "fs:write_file",
    }
)
DOMINANT_FROM = 3
"""Runs that a path needs before it can be the dominant one."""
CONNECTED_WITHIN = 60.0
LEARNED_WITHIN = 20.0


class Story:
    """The steps in order; each raises DemoFailed on an unexpected outcome."""

    def __init__(self, session: Session, narrator: Narrator, workspace: Workspace) -> None:
        self._session = session
        self._narrator = narrator
        self._workspace = workspace
        self._runner = Runner(session, narrator)
        self._code = (files("pml_cli.demo") / "ensure_note.ts").read_text(encoding="utf-8")
        self._runs: list[Run] = []

    def tell(self, servers: Sequence[DemoServer]) -> None:
        """Run all steps on a ready stack."""
        with self._narrator.step("The gateway connects the MCP servers"):
            self._connect(servers)
        with self._narrator.step("An agent sends a program"):
            asked = self._submit()
        with self._narrator.step(
            "The analysis: what the program would do, and why it needs approval"
        ):
            self._review(asked)
        with self._narrator.step("A person approves: the note is missing, so it is written"):
            self._first_run(asked)
        with self._narrator.step("The same program again: the note exists, so it is read"):
            self._run_code()
        with self._narrator.step("Another agent searches for it in other words"):
            found = self._discover()
        with self._narrator.step("It calls the capability by name, with other arguments"):
            self._call_by_name(found)
        with self._narrator.step("What was learned from the runs"):
            capability = self._learned()
        with self._narrator.step("The recorded traces: one run of each branch"):
            self._traces(capability.capability_id)

    def _connect(self, servers: Sequence[DemoServer]) -> None:
        tools = until(
            lambda: found if (found := self._session.tools()) >= NEEDED else None,
            "the tools of both MCP servers are available",
            CONNECTED_WITHIN,
            self._session.server_errors,
        )
        for server in servers:
            count = sum(tool.startswith(f"{server.name}:") for tool in tools)
            self._narrator.check(count > 0, f"{server.name}: {count} tools")

    def _submit(self) -> Answer:
        self._narrator.say(
            Syntax(self._code, "typescript", theme="ansi_dark", background_color="default")
        )
        arguments = self._workspace.arguments("monday", MONDAY)
        shown = (f"args.{name:<7}[cyan]{escape(value)}" for name, value in arguments.items())
        self._narrator.say(*shown)
        asked = self._runner.request(self._request())
        self._narrator.check(True, "the gateway stores it and asks for approval")
        return asked

    def _request(self) -> dict[str, object]:
        arguments = self._workspace.arguments("monday", MONDAY)
        return {"code": self._code, "intent": INTENT, "name": NAME, "args": arguments}

    def _review(self, asked: Answer) -> None:
        state = self._session.workflow(asked.workflow_id)
        if state.structure is None or asked.approval is None:
            raise DemoFailed("the gateway does not show what the program would do")
        say, check = self._narrator.say, self._narrator.check
        say(structure_tree(state.structure, NAME))
        say(*(f"[yellow]?[/] {escape(reason)}" for reason in asked.approval.reasons))
        calls = frozenset(node.tool for node in state.structure.nodes if isinstance(node, TaskNode))
        check(calls == NEEDED, f"all {len(NEEDED)} tools it may call were found", sorted(calls))
        writing = {"fs:create_directory", "fs:write_file"}
        check(
            set(asked.approval.tools) == writing,
            "reading is allowed; writing needs approval",
            asked.approval.tools,
        )
        folder = self._workspace.note("monday").parent
        check(not folder.exists(), f"nothing has run: {folder.name}/ does not exist", folder)
        check(state.executed_path == (), "nothing has run: no node was reached")

    def _first_run(self, asked: Answer) -> None:
        run = self._keep(self._runner.approve(asked, "code", "written"))
        note = self._workspace.note("monday")
        there = note.read_text(encoding="utf-8") if note.exists() else ""
        fact = f"on disk: {run.result.note}, with its text and the last commit, {COMMIT!r}"
        self._narrator.check(MONDAY in there and COMMIT in there, fact, there or "no such file")

    def _run_code(self) -> None:
        run = self._keep(
            self._runner.approve(self._runner.request(self._request()), "code", "read")
        )
        first, check = self._runs[0], self._narrator.check
        same = run.result.text == first.result.text
        check(same, "it returned what the first run wrote", run.result.text)
        check(run.capability_id == first.capability_id, "both runs belong to one capability")

    def _discover(self) -> CapabilityHit:
        self._narrator.say(f"its intent     [dim]{escape(INTENT)}[/]")
        self._narrator.say(f"searched for   [bold]{escape(OTHER_WORDS)}[/]")
        hits = until(
            lambda: [hit for hit in self._session.discover(OTHER_WORDS).hits] or None,
            "discovery returns results",
            LEARNED_WITHIN,
        )
        for rank, hit in enumerate(hits[:3], 1):
            known = hit.name if hit.type == "capability" else hit.id
            self._narrator.say(f"  {rank}. {hit.score:.2f} {hit.type} [bold]{escape(known)}[/]")
        best = hits[0]
        if not isinstance(best, CapabilityHit) or best.name != NAME:
            raise DemoFailed(f"expected {NAME} first, but got {best.name}")
        self._narrator.check(True, f"{NAME} is found by its meaning, before all tools")
        return best

    def _call_by_name(self, found: CapabilityHit) -> None:
        calls: tuple[tuple[str, str, Branch], ...] = (
            ("tuesday", TUESDAY, "written"),
            ("tuesday", TUESDAY, "read"),
            ("monday", MONDAY, "read"),
        )
        for name, text, expected in calls:
            arguments = self._workspace.arguments(name, text)
            asked = self._runner.request({"capability": found.name, "args": arguments})
            self._keep(self._runner.approve(asked, found.name, expected))
        paths = {run.path for run in self._runs}
        self._narrator.check(len(paths) == 2, "both branches were taken, and no other path", paths)

    def _learned(self) -> CapabilityRecord:
        self._narrator.say("the path each run took", runs_table(self._runs))
        capability = until(self._all_learned, "every run has been learned", LEARNED_WITHIN)
        self._narrator.console.print()
        self._narrator.say(learned_paths(capability.learning))
        often = [path for path in capability.learning.paths if path.count >= DOMINANT_FROM]
        best = max(often, key=lambda path: path.success_rate * path.count)
        dominant = capability.learning.dominant_path
        fact = "the dominant path is the one that succeeded most often"
        self._narrator.check(dominant == best.path, fact, dominant)
        usage = capability.usage
        self._narrator.say(
            f"{usage.count} runs of {NAME} so far, this and earlier demos; "
            f"{usage.success_rate:.0%} succeeded"
        )
        return capability

    def _all_learned(self) -> CapabilityRecord | None:
        """The capability, once its statistics count every trace and each path counts our runs."""
        record = self._session.capability(self._runs[0].capability_id)
        recorded = self._session.traces_of(record.capability_id).total
        counts = {path.path: path.count for path in record.learning.paths}
        ours = [run.path for run in self._runs]
        seen = all(counts.get(path, 0) >= ours.count(path) for path in ours)
        mine = all(self._session.traces(run.workflow_id).total == 1 for run in self._runs)
        return record if seen and mine and record.usage.count == recorded else None

    def _traces(self, capability_id: UUID) -> None:
        recorded = self._session.traces_of(capability_id).traces
        by_workflow = {trace.workflow_id: trace for trace in recorded}
        shown: list[ExecutionTrace] = []
        for did in ("written", "read"):
            run = next(run for run in self._runs if run.result.did == did)
            shown.append(by_workflow[run.workflow_id])
        self._narrator.say(trace_tree(shown))
        calls = [call for trace in shown for call in trace.task_results]
        fact = f"all {len(calls)} calls are recorded with their durations"
        expected = sum(node[0] == "n" for trace in shown for node in trace.executed_path)
        self._narrator.check(len(calls) == expected and all(c.success for c in calls), fact)

    def _keep(self, run: Run) -> Run:
        self._runs.append(run)
        return run
