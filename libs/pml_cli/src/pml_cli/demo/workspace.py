"""The demo's workspace: a real git repository with one commit."""

import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from pml_cli.demo.narrator import DemoFailed

README = "# Notes\n\nThis folder belongs to `pml demo`, which writes its notes here.\n"
COMMIT = "Begin the notes"
AUTHOR = "PML demo"
GIT_SECONDS = 30.0


class Workspace:
    """A repository and its `topic`, the name of a sub-folder that no earlier demo used."""

    def __init__(self, folder: Path, topic: str) -> None:
        self.folder = folder
        self.topic = topic

    def note(self, name: str) -> Path:
        """Path of one of the program's notes."""
        return self.folder / self.topic / f"{name}.md"

    def arguments(self, name: str, text: str) -> dict[str, str]:
        """The program's arguments for a note."""
        note = f"{self.topic}/{name}.md"
        return {"folder": str(self.folder), "topic": self.topic, "note": note, "text": text}


def open_workspace(folder: Path) -> Workspace:
    """Open the workspace in this folder, creating it at first use. Raises DemoFailed."""
    if not folder.exists():
        _make_repository(folder)
    return Workspace(folder.resolve(), f"visit-{_count_visit(folder.with_name('visits.log'))}")


def _count_visit(log: Path) -> int:
    """A number unique to this visit: the next stack may still finish an interrupted visit, so no
    later one may use the same number."""
    with log.open("a+", encoding="utf-8") as visits:
        visits.seek(0)
        number = len(visits.readlines()) + 1
        visits.write(f"visit-{number} {datetime.now(UTC).isoformat(timespec='seconds')}\n")
    return number


def _make_repository(folder: Path) -> None:
    """Create it under a temporary name and rename it, so that an interruption leaves no partial
    one."""
    aside = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    (aside / "README.md").write_text(README, encoding="utf-8")
    for words in (("init", "--quiet"), ("add", "README.md"), ("commit", "-qm", COMMIT)):
        _git(aside, *words)
    aside.rename(folder)


def _git(folder: Path, *words: str) -> None:
    """Run git as the demo's own author, regardless of the user's configuration."""
    program = shutil.which("git")
    if program is None:
        raise DemoFailed("git is not on the PATH: install it; the demo works on a real repository")
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", AUTHOR), ("EMAIL", "demo@pml.invalid"))
    }
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    ran = subprocess.run(  # noqa: S603 - git with words of our own
        (program, *words),
        cwd=folder,
        env={**os.environ, **who, **own},
        capture_output=True,
        text=True,
        timeout=GIT_SECONDS,
        check=False,
    )
    if ran.returncode != 0:
        raise DemoFailed(f"git {words[0]} failed in {folder}: {ran.stderr.strip()}")
