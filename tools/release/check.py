"""Build the release of the last commit twice, in clones that differ in all that must not matter,
and compare every byte."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tools.release.requirements import checksums
from tools.release.version import ROOT

CLONES = {"one": (0o022, "UTC"), "another/with a longer path": (0o077, "Pacific/Auckland")}
"""Paths, umasks and time zones."""


def main() -> int:
    """Print what differs; return the exit code."""
    with tempfile.TemporaryDirectory(prefix="pml-release-") as folder:
        built = [build(Path(folder, name), *each) for name, each in CLONES.items()]
    differing = sorted(
        name for name in {**built[0], **built[1]} if len({b.get(name) for b in built}) > 1
    )
    for name in differing:
        print(f"{name} differs between two builds of one commit", file=sys.stderr)
    if not differing:
        print(f"{len(built[0])} files are the same in two builds")
    return 1 if differing else 0


def build(clone: Path, umask: int, zone: str) -> Mapping[str, str]:
    """Clone the last commit and build it there; return the checksums."""
    subprocess.run(("git", "clone", "--quiet", "--local", ROOT, clone), check=True, umask=umask)
    words = ("--rehearse", "--no-images", "--out", clone / "dist")
    subprocess.run(
        (sys.executable, "-m", "tools.release.build", *words),
        cwd=clone,
        check=True,
        env={**os.environ, "TZ": zone},
        umask=umask,
        stdout=subprocess.DEVNULL,
        timeout=900,
    )
    return checksums(clone / "dist")


if __name__ == "__main__":
    sys.exit(main())
