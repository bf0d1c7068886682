"""A data folder of an older revision, killed in the middle of its work, under this revision.

For releases whose services do not work beside older ones: the whole stack is of one revision, the
other one starts on the same folder.
"""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from os import environ
from pathlib import Path

import httpx2
import psutil

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.approver import KEY_FILE_VARIABLE, approver_headers
from pml_local.ports import LOOPBACK, free_port
from tests.upgrade.load import Load, Outcome
from tests.upgrade.mixed_stack import Side, files_of, lists_tools, write_files
from tests.upgrade.phases import RUNS, Phase, Result, line_of, without_trace

CUT = """
const first = await mcp.tally.mark({ run: args.run, n: 1 });
const seen = await mcp.tally.look({ run: args.run, n: first.n, wait: args.wait });
const last = await mcp.tally.mark({ run: args.run, n: seen.n + 1 });
return last.n;
"""
"""A run that is killed while it reads; nobody may mark again."""
UNLEARNED = "return (await mcp.tally.mark({ run: args.run, n: 1 })).n;"
WAITS_MS = 3_000


class StackEnded(Exception):
    """A stack ended instead of getting ready."""


@dataclass(frozen=True)
class WholeStack:
    """A stack of one revision, started as its users do."""

    http: httpx2.AsyncClient
    approver: Mapping[str, str]
    calls: Path
    url: str
    process: asyncio.subprocess.Process

    def kill(self) -> list[psutil.Process]:
        """Kill every process of the stack, as a power cut does; returns them."""
        supervisor = psutil.Process(self.process.pid)
        every = [supervisor, *supervisor.children(recursive=True)]
        for each in every:
            with suppress(psutil.NoSuchProcess):  # some end with their parent
                each.kill()
        return every

    def learner(self) -> psutil.Process:
        """Return the learner."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        [found] = [each for each in below if "pml_learner" in " ".join(each.cmdline())]
        return found


async def older_folder(
    folder: Path, pythons: Mapping[Side, Path], say: Callable[[str], None]
) -> Sequence[Result]:
    """Work with the old revision, kill it, start the new one on its folder and finish the work."""
    write_files(folder)
    async with whole_stack(folder, pythons["old"]) as stack:
        before = Load(stack)
        await before.learn()
        async with before.callers():
            await before.some(RUNS)
        await before.ask()
        await _leave_unlearned(stack, before)
        await _cut(stack, before)
    say(line_of(Result(Phase("all old", {}), before.outcome)))
    async with whole_stack(folder, pythons["new"]) as stack:
        load = replace(before, site=stack, outcome=Outcome())
        load.outcome.wrong += await _end_of_the_cut(stack, load)
        await load.decide()
        await load.look_around()
        async with load.callers():
            await load.some(RUNS)
        load.outcome.wrong += [*load.miscounted(), *await without_trace(load)]
    result = Result(Phase("all new, on the folder that the old left", {}), load.outcome)
    say(line_of(result))
    return [result]


@asynccontextmanager
async def whole_stack(folder: Path, python: Path) -> AsyncGenerator[WholeStack]:
    """Run `pml up` of a revision on `folder`; what is left of it is ended with the context."""
    port, key, work = free_port(), folder / "state" / "approver.key", folder / "work"
    work.mkdir(exist_ok=True)
    with (folder / "pml-up.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(python.with_name("pml"), "up", "--home", folder / "data", "--port", str(port)),
            env={**environ, **files_of(folder), KEY_FILE_VARIABLE: str(key)},
            cwd=work,
            stdout=log,
            stderr=log,
        )
    url = f"http://{LOOPBACK}:{port}"
    try:
        async with httpx2.AsyncClient(base_url=url, timeout=2 * PATIENCE_S) as http:
            await eventually(lambda: _is_ready(http, process), within=4 * PATIENCE_S)
            yield WholeStack(http, approver_headers(key), folder / "calls.jsonl", url, process)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            await process.wait()


async def _is_ready(http: httpx2.AsyncClient, process: asyncio.subprocess.Process) -> bool:
    if process.returncode is not None:
        raise StackEnded(f"`pml up` ended with {process.returncode}: see pml-up.log")
    try:
        return await lists_tools(http)
    except httpx2.TransportError:
        return False


async def _leave_unlearned(stack: WholeStack, load: Load) -> None:
    """Let a run end while the learner does nothing."""
    stack.learner().suspend()
    answer = await load.caller(stack.http).execute(UNLEARNED, "unlearned", {})
    load.check("unlearned", answer, 1, calls=1)


async def _cut(stack: WholeStack, load: Load) -> None:
    """Kill everything while a run reads."""
    asked = asyncio.create_task(load.caller(stack.http).execute(CUT, "cut", {"wait": WAITS_MS}))
    await eventually(lambda: "tally:look" in _tools_called(stack, "cut"))
    asked.cancel()
    killed = stack.kill()
    await asyncio.gather(asked, return_exceptions=True)
    await eventually(lambda: all(map(_has_ended, killed)))


async def _end_of_the_cut(stack: WholeStack, load: Load) -> list[str]:
    """Wait for the end of the run that was killed, and return what is wrong with it."""
    answer = await load.caller(stack.http).execute(CUT, "cut", {"wait": WAITS_MS})
    marks = _tools_called(stack, "cut").count("tally:mark")
    right = (answer["status"], answer["result"], marks) == ("success", 2, 2)
    return [] if right else [f"cut: {json.dumps(answer)[:400]}, {marks} marks instead of 2"]


def _has_ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def _tools_called(stack: WholeStack, run: str) -> list[str]:
    lines = map(json.loads, stack.calls.read_text(encoding="utf-8").splitlines())
    return [call["tool"] for call in lines if call["args"]["run"] == run]
