"""The type checker: one warm Deno process behind a lock, replaced when it is lost or worn."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from typing_extensions import override

from pml_analysis.typing.declarations import NONE, as_module, declarations
from pml_analysis.typing.type_check import (
    CheckedModule,
    Finding,
    checked_module,
    type_errors,
    unchecked,
)
from pml_checker.checker_process import (
    CheckerCommand,
    CheckerEnded,
    CheckerLost,
    CheckerProcess,
)
from pml_checker.type_check import TypeChecker
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.tool import ToolDefinition

log = logging.getLogger(__name__)

_MAX_TEXTS: Final = 64


@dataclass(frozen=True)
class CheckerLimits:
    """Limits of a check in seconds, waiting included; the number of checks or MiB of memory after
    which a process is worn; the pause after a failed start. A program beyond the `most_waiting` is
    not checked. If `is_warm`, a process always waits; else it starts with a program, and ends after
    `idle_s` seconds without one."""

    patience_s: float = 2.0
    most_waiting: int | None = None
    checks: int = 5_000
    resident_mib: int = 768
    rest_s: float = 5.0
    is_warm: bool = True
    idle_s: float = 60.0


@asynccontextmanager
async def deno_checker(
    command: CheckerCommand, limits: CheckerLimits | None = None
) -> AsyncGenerator["DenoChecker"]:
    """Run a checker until the context exits; its processes start in the background."""
    checker = DenoChecker(command, limits or CheckerLimits())
    try:
        yield checker
    finally:
        await checker.close()


class DenoChecker(TypeChecker):
    """Checks programs one after the other: the compiler has one thread."""

    def __init__(self, command: CheckerCommand, limits: CheckerLimits) -> None:
        self._command = command
        self._limits = limits
        self._declarations = _DeclarationCache()
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._start_failure: str | None = None
        self._process = asyncio.create_task(self._start()) if limits.is_warm else None
        self._idle: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None

    @override
    async def check(
        self,
        code: str,
        free: Sequence[str],
        tools: Sequence[ToolDefinition],
        capabilities: Mapping[str, ToolDefinition] = NONE,
    ) -> Sequence[Diagnostic]:
        patience, most = self._limits.patience_s, self._limits.most_waiting
        if most is not None and self._waiting >= most:
            return [unchecked(f"{most} programs are waiting for the checker")]
        self._waiting += 1
        try:
            async with asyncio.timeout(patience):
                name, text = await self._declarations.of(tools, capabilities)
                module = checked_module(code, free, name)
                async with self._turn:
                    findings = await self._check_with_retry(module, name, text)
        except TimeoutError:
            return [unchecked(f"the checker did not answer within {patience:g} s")]
        except CheckerLost as lost:
            return [unchecked(str(lost))]
        finally:
            self._waiting -= 1
        return type_errors(code, module.prefix, findings)

    @property
    def process(self) -> CheckerProcess | None:
        """The process, once it is warm."""
        started = self._process
        if started is None or not started.done() or started.cancelled():
            return None
        return started.result()

    async def health(self) -> str | None:
        """Return why no process can be started, or None."""
        return self._start_failure

    async def close(self) -> None:
        """End the process."""
        self._stay()
        if self._process is not None:
            self._process.cancel()
            with suppress(asyncio.CancelledError):
                await (await self._process).close()
        if self._ending is not None:
            await self._ending

    async def _check_with_retry(
        self, module: CheckedModule, name: str, text: str
    ) -> Sequence[Finding]:
        try:
            return await self._check_once(module, name, text)
        except CheckerEnded:  # possibly before this request
            return await self._check_once(module, name, text)

    async def _check_once(self, module: CheckedModule, name: str, text: str) -> Sequence[Finding]:
        if self._start_failure is not None:
            raise CheckerLost(self._start_failure)
        self._stay()
        if self._process is None:
            self._process = asyncio.create_task(self._start())
        process = await asyncio.shield(self._process)
        sound = False
        try:
            findings = await process.check(module.text, name, text)
            sound = process.checks < self._limits.checks
            sound = sound and process.resident_mib < self._limits.resident_mib
            return findings
        finally:
            if not sound:
                process.kill()
                self._process = asyncio.create_task(self._start(instead_of=process))
            elif not self._limits.is_warm:
                later = asyncio.get_running_loop().call_later
                self._idle = later(self._limits.idle_s, self._end_idle, process)

    def _stay(self) -> None:
        """Keep the process, however long it was idle."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _end_idle(self, process: CheckerProcess) -> None:
        self._idle = self._process = None
        self._ending = asyncio.create_task(process.close())

    async def _start(self, instead_of: CheckerProcess | None = None) -> CheckerProcess:
        """Start a process, with any number of attempts, and return it once it is warm."""
        if instead_of is not None:
            await instead_of.close()
        while True:
            try:
                process = await CheckerProcess.start(self._command)
            except CheckerLost as lost:
                self._start_failure = str(lost)
                log.warning("type checker: %s", lost)
                await asyncio.sleep(self._limits.rest_s)
            else:
                self._start_failure = None
                return process


class _DeclarationCache:
    """Declarations by their sequence of tools, each built once, with the name of their module: a
    digest, so that two scopes share one only where the contents are equal."""

    def __init__(self) -> None:
        self._entries: OrderedDict[int, _Declarations] = OrderedDict()

    async def of(
        self, tools: Sequence[ToolDefinition], capabilities: Mapping[str, ToolDefinition]
    ) -> tuple[str, str]:
        made = self._entries.get(id(tools))
        if made is None or made.capabilities != capabilities:
            text = as_module(await asyncio.to_thread(declarations, tools, capabilities))
            name = f"{sha256(text.encode()).hexdigest()[:32]}.d.ts"
            made = self._entries[id(tools)] = _Declarations(tools, dict(capabilities), name, text)
        self._entries.move_to_end(id(tools))
        if len(self._entries) > _MAX_TEXTS:
            self._entries.popitem(last=False)
        return made.name, made.text


@dataclass(frozen=True)
class _Declarations:
    tools: Sequence[ToolDefinition]  # referenced, so that its id is not reused
    capabilities: Mapping[str, ToolDefinition]
    name: str
    text: str
