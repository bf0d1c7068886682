"""Control groups: where a process's own are, and what a sandbox's are set to."""

from collections.abc import Mapping
from dataclasses import dataclass

from pml_executor.domain.resources import Resources

CONTROLLERS = ("memory", "pids")
_THREADS = 128
_MIB = 2**20


@dataclass(frozen=True)
class Place:
    """A folder below the mount of control groups, and the version that rules there."""

    folder: str
    version: int


def places(own: str) -> dict[str, Place]:
    """Where each controller has the process's own group, of the text of /proc/self/cgroup."""
    found: dict[str, Place] = {}
    for line in own.splitlines():
        _, names, path = line.split(":", 2)
        for name in CONTROLLERS:
            if name in names.split(","):
                found[name] = Place(f"{names}{path}", 1)
            elif not names:
                found.setdefault(name, Place(path.lstrip("/"), 2))
    return found


def values(controller: str, place: Place, resources: Resources) -> Mapping[str, str]:
    """What is written to which file of a new group."""
    if controller == "pids":
        return {"pids.max": str(_THREADS)}
    name = "memory.limit_in_bytes" if place.version == 1 else "memory.max"
    most = resources.rss_for(resources.most_growth_mib)
    return {name: str(int(most * _MIB))}


def killed(events: str) -> bool:
    """Whether the kernel ended somebody for lack of memory, of the text of memory.events (or
    memory.oom_control, in version 1)."""
    counts = dict(line.split(" ", 1) for line in events.splitlines() if " " in line)
    return int(counts.get("oom_kill", "0")) > 0
