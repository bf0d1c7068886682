"""Faults, drawn from a seed and injected into a running stack one after another."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from random import Random

import psutil
from nats.errors import Error as NatsError
from nats.js import JetStreamContext

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.errors import StackError
from tests.faults.poison import Poison
from tests.faults.records import Fault, Injection
from tests.faults.site import DISK, Site
from tests.faults.skewed_executor import set_skew

SERVICES = ("gateway", "analyzer", "executor", "learner", "registry")
STORES = ("nats", "postgres")
TOOLS = ("tally", "depot")
HOUR_S = 3600.0
PAGE = 4096
RECOVERS_WITHIN_S = PATIENCE_S
RETURNS_WITHIN_S = PATIENCE_S
LASTS_S = (1.5, 5.0)
NOT_DONE = (StackError, psutil.Error, OSError, KeyError, RuntimeError, AssertionError)
"""The part was not running, or did not recover."""


def every_fault(*, disk: bool) -> list[Fault]:
    """Each kind of fault on each part that it applies to, without a duration."""
    pairs = {
        "kill": (*SERVICES, *STORES, *TOOLS),
        "freeze": (*SERVICES, *STORES, "depot"),
        "restart": SERVICES,
        "outage": (*STORES, "depot"),
        "poison": ("garbage", "forged", "journal", "doubled journal", "repeated", "shuffled"),
        "clock": ("ahead", "behind"),
        "disk": ("full",) if disk else (),
    }
    return [Fault(kind, target) for kind, targets in pairs.items() for target in targets]


def drawn(faults: Sequence[Fault], chance: Random) -> Iterator[Fault]:
    """Yield all faults in random order, each with a duration, repeatedly without end."""
    while True:
        for fault in chance.sample(faults, len(faults)):
            yield Fault(fault.kind, fault.target, round(chance.uniform(*LASTS_S), 1))


@dataclass(frozen=True)
class Injector:
    """Injects faults into a site."""

    site: Site
    poison: Poison

    @classmethod
    def on(cls, site: Site, chance: Random) -> "Injector":
        """Build an injector whose poison is drawn from the same seed."""
        js = JetStreamContext(site.client, timeout=5.0)
        return cls(site, Poison(site, chance, js))

    async def inject(self, fault: Fault) -> Injection:
        """Inject a fault, and wait until the stack is healthy again."""
        began = time.time()
        try:
            note = await self._kinds[fault.kind](fault) or ""
        except NOT_DONE as error:
            note = f"not done: {error!r}"
        ended = time.time()
        problems = await self._recovered()
        recovered = None if problems else time.time()
        remaining = "; ".join(f"{part}: {problem}" for part, problem in problems.items())
        return Injection(fault, began, ended, recovered, remaining or note)

    @property
    def _kinds(self) -> Mapping[str, Callable[[Fault], Awaitable[str | None]]]:
        return {
            "kill": self._kill,
            "freeze": self._freeze,
            "restart": self._restart,
            "outage": self._outage,
            "poison": self._poison,
            "clock": self._clock,
            "disk": self._disk,
        }

    async def _kill(self, fault: Fault) -> None:
        if fault.target == "depot":
            async with self._without_depot():
                return
        pid = self._pid(fault.target)
        os.kill(pid, signal.SIGKILL)
        await eventually(
            lambda: self._pid_or_none(fault.target) not in (None, pid), RETURNS_WITHIN_S
        )

    async def _freeze(self, fault: Fault) -> None:
        frozen = [psutil.Process(self._pid(fault.target))]
        if fault.target == "postgres":  # its sessions are separate processes
            frozen += frozen[0].children(recursive=True)
        for process in frozen:
            _signal(process, signal.SIGSTOP)
        try:
            await asyncio.sleep(fault.seconds)  # waits: length of the fault
        finally:
            for process in frozen:
                _signal(process, signal.SIGCONT)

    async def _restart(self, fault: Fault) -> None:
        await self.site.stack.restart(fault.target)

    async def _outage(self, fault: Fault) -> None:
        away = (
            self._without_depot()
            if fault.target == "depot"
            else self.site.stack.without(fault.target)
        )
        async with away:
            await asyncio.sleep(fault.seconds)  # waits: length of the fault

    async def _poison(self, fault: Fault) -> str:
        try:
            return await self.poison.kinds[fault.target]()
        except (NatsError, TimeoutError) as error:
            return f"not done: {error!r}"

    async def _clock(self, fault: Fault) -> None:
        hour = HOUR_S if fault.target == "ahead" else -HOUR_S
        set_skew(self.site.skew, hour)
        try:
            await asyncio.sleep(fault.seconds)  # waits: length of the fault
        finally:
            set_skew(self.site.skew, 0.0)

    async def _disk(self, fault: Fault) -> None:
        """Shrink the disk to its current contents, then grow it again."""
        disk = self.site.disk
        if disk is None:
            raise RuntimeError("the site has no disk of its own")
        try:
            await eventually(lambda: _shrink(disk))
            await asyncio.sleep(fault.seconds)  # waits: length of the fault
        finally:
            await _resize(disk, DISK)

    async def _recovered(self) -> dict[str, str]:
        """Problems that remain after the limit."""
        problems = dict[str, str]()

        async def healthy() -> bool:
            problems.clear()
            problems.update(await self.site.problems())
            return not problems

        with suppress(AssertionError):
            await eventually(healthy, within=RECOVERS_WITHIN_S)
        return problems

    @asynccontextmanager
    async def _without_depot(self) -> AsyncGenerator[None]:
        await self.site.depot.kill()
        try:
            yield
        finally:
            await self.site.depot.start()

    def _pid(self, name: str) -> int:
        if name == "depot":
            return self.site.depot.pid
        if name != "tally":
            return self.site.stack.pid_of(name)
        gateway = psutil.Process(self.site.stack.pid_of("gateway"))
        own = [child for child in gateway.children(recursive=True) if _is_tally(child)]
        if not own:
            raise RuntimeError("tally does not run")
        return own[-1].pid

    def _pid_or_none(self, name: str) -> int | None:
        """The pid, or None while it does not run."""
        try:
            return self._pid(name)
        except (KeyError, RuntimeError, psutil.Error):
            return None


def _is_tally(process: psutil.Process) -> bool:
    try:
        return any(word.endswith("tool_server.py") for word in process.cmdline())
    except psutil.Error:
        return False


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


async def _shrink(disk: os.PathLike[str]) -> bool:
    """Leave one page free; returns whether that worked, as the contents grow meanwhile."""
    known = os.statvfs(disk)
    used = (known.f_blocks - known.f_bfree) * known.f_bsize
    with suppress(subprocess.CalledProcessError):
        await _resize(disk, str(used + PAGE))
        return True
    return False


async def _resize(disk: os.PathLike[str], size: str) -> None:
    command = ["mount", "-o", f"remount,size={size}", str(disk)]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
