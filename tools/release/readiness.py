"""Conditions that a commit must fulfil to be released."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from tools.release import changelog, migrations
from tools.release.version import ROOT, declared, disagreements


def problems(root: Path = ROOT) -> Iterator[str]:
    """Say what has to be done before, in order."""
    version = declared(root)
    if _git(root, "status", "--porcelain"):
        yield "the tree is dirty: commit or remove what `git status` shows"
    yield from (
        f"{each} - run `make version VERSION={version}`" for each in disagreements(version, root)
    )
    yield from _tag_problems(_git(root, "tag", "--points-at", "HEAD").split(), version)
    if not changelog.section((root / "CHANGELOG.md").read_text(encoding="utf-8"), version):
        yield f"CHANGELOG.md has no section {version} - run `make changelog`"
    if migrations.present() != migrations.released():
        yield f"{migrations.FILE.name} lacks migrations - run `make released-migrations`"


def _tag_problems(tags: list[str], version: str) -> Iterator[str]:
    releases = [tag for tag in tags if tag.startswith("v")]
    if not releases:
        yield f"the commit has no tag: `git tag -s v{version}`"
    elif releases != [f"v{version}"]:
        yield f"the commit is {', '.join(releases)}, pyproject.toml says {version}"


def commit_time(root: Path = ROOT) -> int:
    """Return the commit's time in seconds since 1970, which all files of a release bear."""
    return int(_git(root, "log", "-1", "--format=%ct"))


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(("git", *words), cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()
