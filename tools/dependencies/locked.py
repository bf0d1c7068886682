"""Third-party packages that the lock gives to each part of PML where it runs: on Linux."""

import os
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PARTS: Mapping[str, tuple[str, ...]] = {
    "gateway": ("--package", "pml-gateway"),
    "analyzer": ("--package", "pml-analyzer"),
    "executor": ("--package", "pml-executor"),
    "learner": ("--package", "pml-learner"),
    "registry": ("--package", "pml-registry"),
    "command": ("--package", "pml-stack"),
    "local": ("--package", "pml-stack", "--extra", "local"),
}
"""Parts that can be installed by themselves, and the options that export each; `local` has all
others."""
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_LINUX = {
    "sys_platform": "linux",
    "platform_system": "Linux",
    "os_name": "posix",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
}


@dataclass
class LockedPackage:
    """One package: its versions, of which one Python gets one, and the parts that need it."""

    name: str
    versions: set[str] = field(default_factory=set[str])
    parts: list[str] = field(default_factory=list[str])


def locked_packages() -> list[LockedPackage]:
    """Return all of them, by name. Raises CalledProcessError."""
    found: defaultdict[str, LockedPackage] = defaultdict(lambda: LockedPackage(""))
    for part, options in PARTS.items():
        for line in export(*options, "--no-hashes").splitlines():
            requirement = Requirement(line)
            if not runs_here(requirement.marker):
                continue
            package = found[canonicalize_name(requirement.name)]
            package.name = requirement.name
            package.versions.add(str(requirement.specifier).removeprefix("=="))
            if part not in package.parts:
                package.parts.append(part)
    return [found[name] for name in sorted(found)]


def export(*options: str) -> str:
    """Return locked packages as requirements, without those of the workspace and of development.
    Raises CalledProcessError."""
    quietly = ("--no-emit-workspace", "--no-annotate", "--no-header", "--quiet")
    command = (os.environ.get("UV", "uv"), "export", "--frozen", "--no-dev", *quietly, *options)
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def runs_here(marker: Marker | None) -> bool:
    """Whether a marker holds on Linux for any Python that PML supports."""
    if marker is None:
        return True
    return any(
        marker.evaluate({**_LINUX, "python_version": each, "python_full_version": f"{each}.0"})
        for each in _PYTHONS
    )
