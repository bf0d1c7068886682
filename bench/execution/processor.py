"""CPU time of a stack's processes, from /proc."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import psutil

from pml_local.stack import Stack

_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Used:
    """CPU milliseconds so far: of the process itself, and of its ended children."""

    own: float
    ended: float


def _used_by(pid: int) -> Used:
    """Zero once the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return Used(0.0, 0.0)
    fields = text.rpartition(")")[2].split()
    user, system, ended_user, ended_system = (int(field) * _TICK_MS for field in fields[11:15])
    return Used(user + system, ended_user + ended_system)


def own(pid: int) -> float:
    """CPU milliseconds of a process."""
    return _used_by(pid).own


def busy_s() -> float:
    """Seconds for which the cores of this process were not idle so far, summed; those that the host
    took for others count."""
    times = psutil.cpu_times(percpu=True)
    return sum(sum(times[core][:8]) - times[core].idle - times[core].iowait for core in _cores())


def _cores() -> set[int]:
    return os.sched_getaffinity(0)


def children(pid: int) -> list[int]:
    """The running child processes."""
    return [child.pid for child in psutil.Process(pid).children()]


def below(pid: int) -> list[int]:
    """All descendants; empty once the process is gone."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _tree(pid: int) -> float:
    """CPU milliseconds of all current and former descendants."""
    used = [_used_by(child) for child in below(pid)]
    return _used_by(pid).ended + sum(one.own + one.ended for one in used)


def whole(pid: int) -> float:
    """CPU milliseconds of a process and all its current and former descendants."""
    return own(pid) + _tree(pid)


def snapshot(
    stack: Stack, replicas: Mapping[str, int] = MappingProxyType({})
) -> Mapping[str, float]:
    """CPU milliseconds so far of each part, of further replicas (name: pid), of the sandboxes, of
    the gateway's tool servers if there are any, and of this process (the callers)."""
    found = {name: own(part.pid) for name, part in stack.parts.items()}
    found["postgres"] = whole(stack.pid_of("postgres"))
    found["sandboxes"] = _tree(stack.pid_of("executor"))
    if tool_servers := _tree(stack.pid_of("gateway")):
        found["tool servers"] = tool_servers
    for name, pid in replicas.items():
        found[name] = own(pid)
        found["sandboxes"] += _tree(pid)
    found["callers"] = own(os.getpid())
    return found


def per_workflow(
    before: Mapping[str, float], after: Mapping[str, float], workflows: int
) -> dict[str, float]:
    """CPU milliseconds of each part per workflow, largest first, and in total."""
    each = {name: (after[name] - before[name]) / workflows for name in after}
    return dict(sorted(each.items(), key=lambda pair: -pair[1])) | {"all": sum(each.values())}
