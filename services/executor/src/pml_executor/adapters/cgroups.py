"""Control groups of sandbox processes, where the executor may create any."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from pml_executor.domain.cgroups import GroupLocation, group_locations, group_settings, oom_killed
from pml_executor.domain.resources import Resources

_MOUNT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_EVENTS = ("memory.events", "memory.oom_control")
_PREFIX = "pml-sandbox"
_numbers = count()


class Group:
    """The control group of one process, with a folder in each hierarchy."""

    def __init__(self, folders: Mapping[Path, Mapping[str, str]]) -> None:
        """Create the group. Raises OSError, and then leaves nothing."""
        self._folders = list(folders)
        try:
            for folder, settings in folders.items():
                folder.mkdir()
                for name, value in settings.items():
                    (folder / name).write_text(value, encoding="ascii")
        except OSError:
            self.remove()
            raise

    def add(self, pid: int) -> None:
        """Move a process into the group, unless it is gone. Raises OSError."""
        with suppress(ProcessLookupError):
            for folder in self._folders:
                (folder / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def out_of_memory(self) -> bool:
        """Whether the kernel killed the process for its memory."""
        for folder in self._folders:
            for name in _EVENTS:
                with suppress(OSError):
                    if oom_killed((folder / name).read_text(encoding="ascii")):
                        return True
        return False

    def remove(self) -> bool:
        """Remove the group and return whether it is gone; the kernel keeps it for a moment after
        its process has ended."""
        for folder in self._folders:
            with suppress(OSError):
                folder.rmdir()
        return not any(folder.exists() for folder in self._folders)


@dataclass(frozen=True)
class Groups:
    """Creates groups; `controllers` are those that the executor may use."""

    controllers: Mapping[str, GroupLocation]
    resources: Resources

    def new(self) -> Group:
        """Create an empty group. Raises OSError."""
        name = f"{_PREFIX}-{os.getpid()}-{next(_numbers)}"
        folders: dict[Path, dict[str, str]] = {}
        for controller, place in self.controllers.items():
            settings = folders.setdefault(_MOUNT / place.folder / name, {})
            settings.update(group_settings(controller, place, self.resources))
        return Group(folders)


def find_groups(resources: Resources) -> Groups:
    """Return the controllers under which a group can be created here; often there are none."""
    try:
        own = group_locations(_OWN.read_text(encoding="utf-8"))
    except OSError:
        own = {}
    for place in own.values():
        _sweep(_MOUNT / place.folder)
    usable = {name: place for name, place in own.items() if _works(name, place, resources)}
    return Groups(usable, resources)


def _sweep(parent: Path) -> None:
    """Remove the empty groups of executors that were killed."""
    for folder in parent.glob(f"{_PREFIX}-*-*"):
        if not Path("/proc", folder.name.split("-")[-2]).exists():
            with suppress(OSError):
                folder.rmdir()


def _works(controller: str, place: GroupLocation, resources: Resources) -> bool:
    if place.version != 1:
        with suppress(OSError):  # a group that holds processes passes no controller on
            switch = _MOUNT / place.folder / "cgroup.subtree_control"
            switch.write_text(f"+{controller}", encoding="ascii")
    try:
        Groups({controller: place}, resources).new().remove()
    except OSError:
        return False
    return True
