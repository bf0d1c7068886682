"""Control groups: the locations of a process's own, and the settings of a sandbox's."""

from collections.abc import Mapping
from dataclasses import dataclass

from pml_executor.domain.resources import Resources

CONTROLLERS = ("memory", "pids")
_THREADS = 128
_MIB = 2**20


@dataclass(frozen=True)
class GroupLocation:
    """A folder below the mount of control groups, and the version of control groups there."""

    folder: str
    version: int


def group_locations(own: str) -> dict[str, GroupLocation]:
    """Parse /proc/self/cgroup: the location of the process's own group, by controller."""
    found: dict[str, GroupLocation] = {}
    for line in own.splitlines():
        _, names, path = line.split(":", 2)
        for name in CONTROLLERS:
            if name in names.split(","):
                found[name] = GroupLocation(f"{names}{path}", 1)
            elif not names:
                found.setdefault(name, GroupLocation(path.lstrip("/"), 2))
    return found


def group_settings(
    controller: str, place: GroupLocation, resources: Resources
) -> Mapping[str, str]:
    """Return the contents to write to a new group's files, by file name."""
    if controller == "pids":
        return {"pids.max": str(_THREADS)}
    name = "memory.limit_in_bytes" if place.version == 1 else "memory.max"
    most = resources.rss_for(resources.max_growth_mib)
    return {name: str(int(most * _MIB))}


def oom_killed(events: str) -> bool:
    """Whether the kernel killed a process for lack of memory, by the text of memory.events
    (memory.oom_control in version 1)."""
    counts = dict(line.split(" ", 1) for line in events.splitlines() if " " in line)
    return int(counts.get("oom_kill", "0")) > 0
