"""The engine in processes of its own, which are killed when a program takes too long."""

import pickle
import sys
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Final
from weakref import WeakKeyDictionary

from typing_extensions import override

from pml_analysis.analysis import Analysis, Rejection
from pml_analysis.check_results import ended_the_process, took_too_long
from pml_analysis.decision.capabilities import Capability, Library
from pml_analysis.text.limits import Limits
from pml_analyzer.adapters.child_process import ChildCommand, ChildLost, ChildProcess
from pml_analyzer.adapters.engine_worker import Done, Job
from pml_analyzer.adapters.inline_engine import InlineEngine
from pml_analyzer.adapters.worker_pool import OutOfTime, WorkerLimits, WorkerPool, worker_pool
from pml_analyzer.ports import Engine
from pml_common.contracts.capability import CapabilityDescription
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition

INLINE: Final = 4 * 1024
"""Maximum length in bytes of a program that may block the event loop: none so short takes more than
some 60 ms (`bench/slow_texts.py`), most take 2."""

_MAIN: Final = "from pml_analyzer.adapters.engine_worker import main; main()"
_MAX_TOOLS: Final = 8
"""Number of tool catalogs that a process caches."""


class EngineFault(Exception):
    """A pass failed unexpectedly; the message is its traceback."""


def engine_command() -> ChildCommand:
    """Build the command: its environment has the package path only."""
    packages = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    return ChildCommand((sys.executable, "-c", _MAIN), packages)


@asynccontextmanager
async def process_engine(
    limits: WorkerLimits, *, inline: int = INLINE
) -> AsyncGenerator["ProcessEngine"]:
    """Run an engine until the context exits."""
    async with worker_pool("analysis", engine_command(), limits) as pool:
        yield ProcessEngine(pool, inline)


class ProcessEngine(Engine):
    """Analyses programs in a pool of processes; programs of at most `inline` bytes, and no
    capabilities, in this one."""

    def __init__(self, pool: WorkerPool, inline: int) -> None:
        self._pool = pool
        self._inline = inline
        self._here = InlineEngine()
        self._tools = _ToolNumbers()
        self._sent = WeakKeyDictionary[ChildProcess, OrderedDict[int, None]]()
        """The tools that each process has, by number, the most recently used last."""

    @override
    async def analyze(
        self,
        request: ExecutionRequested,
        tools: Sequence[ToolDefinition],
        library: Library,
        limits: Limits,
    ) -> Analysis | Rejection:
        if self._is_short(request.code):
            return await self._here.analyze(request, tools, library, limits)
        given = {"request": request, "library": library, "limits": limits}
        try:
            return await self._run(request.scope, "analyze", given, tools)
        except OutOfTime:
            return took_too_long(self._pool.deadline_s)
        except ChildLost:
            return ended_the_process()

    @override
    async def read_capability(
        self, scope: Scope, about: CapabilityDescription, limits: Limits
    ) -> Capability:
        if self._is_short(about.code):
            return await self._here.read_capability(scope, about, limits)
        try:
            return await self._run(scope, "read_capability", {"about": about, "limits": limits})
        except OutOfTime:
            taken = f"{self._pool.deadline_s:g} s of processor time"
            return Capability(about, fault=f"reading its program took more than {taken}.")
        except ChildLost:
            return Capability(about, fault="its program ended the process that read it, twice.")

    async def health(self) -> str | None:
        """Return why no process can be started, or None."""
        return await self._pool.health()

    def _is_short(self, code: str) -> bool:
        return len(code) <= self._inline and len(code.encode(errors="replace")) <= self._inline

    async def _run(
        self,
        scope: Scope,
        what: str,
        given: dict[str, Any],
        tools: Sequence[ToolDefinition] | None = None,
    ) -> Any:
        async def talk(child: ChildProcess) -> Done:
            job = self._job(child, what, given, tools)
            answer = await child.request(pickle.dumps(job))
            return pickle.loads(answer)  # noqa: S301 - this code's own, which runs no program

        done = await self._pool.run(scope, talk)
        if done.failure is not None:
            raise EngineFault(done.failure)
        return done.value

    def _job(
        self,
        child: ChildProcess,
        what: str,
        given: dict[str, Any],
        tools: Sequence[ToolDefinition] | None,
    ) -> Job:
        if tools is None:
            return Job(what, given)
        sent, number = self._sent.setdefault(child, OrderedDict()), self._tools.of(tools)
        is_new, dropped = number not in sent, ()
        sent[number] = None
        sent.move_to_end(number)
        if len(sent) > _MAX_TOOLS:
            dropped = (sent.popitem(last=False)[0],)
        return Job(what, given, number, tools if is_new else None, dropped)


class _ToolNumbers:
    """A unique number for each of the most recently used sequences of tools."""

    def __init__(self) -> None:
        self._next = count()
        self._known: OrderedDict[int, tuple[Sequence[ToolDefinition], int]] = OrderedDict()

    def of(self, tools: Sequence[ToolDefinition]) -> int:
        known = self._known.get(id(tools))
        if known is None:  # referenced, so that its id is not reused
            known = self._known[id(tools)] = tools, next(self._next)
        self._known.move_to_end(id(tools))
        if len(self._known) > 2 * _MAX_TOOLS:
            self._known.popitem(last=False)
        return known[1]
