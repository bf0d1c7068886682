"""Older revisions of the repository, each in a worktree with a virtual environment of its own."""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".cache" / "upgrade"
FIRST = "653b15cc"
"""The revision that is to be v0.1.0. Its services, and those of before, do not run beside today's
(docs/operations.md); its folder is one that today's go on with."""
WITHOUT_TAG = "754603a2"
"""Base while nothing is tagged: the first revision whose services run beside today's."""


class UnknownRevision(Exception):
    """The repository lacks a revision; a shallow clone needs `git fetch --unshallow`."""


def git(*arguments: str) -> str:
    """Run git in the repository and return its output. Raises CalledProcessError."""
    return subprocess.run(
        ("git", *arguments), cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def chosen(asked: str | None) -> tuple[str, str]:
    """Return the name and the commit of a revision: the one asked for, else the newest tag of an
    earlier commit, else WITHOUT_TAG. Raises UnknownRevision."""
    name = asked or _last_tag() or WITHOUT_TAG
    try:
        return name, git("rev-parse", "--verify", f"{name}^{{commit}}")
    except subprocess.CalledProcessError as error:
        raise UnknownRevision(f"{name}: {error.stderr.strip()}; try `git fetch --tags`") from None


def runs_beside(commit: str) -> bool:
    """Return whether services of a commit may run beside today's: those after FIRST may."""
    command = ("git", "merge-base", "--is-ancestor", commit, FIRST)
    return subprocess.run(command, cwd=ROOT, check=False).returncode != 0


def _last_tag() -> str | None:
    here = set(git("tag", "--points-at", "HEAD").split())
    merged = git("tag", "--merged", "HEAD", "--list", "v*", "--sort=-version:refname").split()
    return next((tag for tag in merged if tag not in here), None)


def python_of(commit: str) -> Path:
    """Make the worktree and the environment of a commit, if they are missing, and return its
    interpreter. Raises CalledProcessError."""
    tree = FOLDER / commit[:12]
    if not (tree / "pyproject.toml").is_file():
        git("worktree", "prune")
        git("worktree", "add", "--force", "--detach", str(tree), commit)
    uv = os.environ.get("UV") or shutil.which("uv") or "uv"
    kept = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    command = (uv, "sync", "--frozen", "--no-dev", "--quiet")
    subprocess.run(command, cwd=tree, check=True, env=kept)
    return tree / ".venv" / "bin" / "python"
