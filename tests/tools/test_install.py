"""Installation by `make`, and the hooks of a commit."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = """#!/usr/bin/env bash
case "$2" in
  venv) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  pip) cp uv-that-notes "${0%/*}/uv" ;;
esac
"""
UV = """#!/usr/bin/env bash
echo "${0#"$PWD"/} $UV_SYSTEM_CERTS $DENO_TLS_CA_STORE $*" >> noted
"""
FAULTY = '"""What it is."""\nimport os\nx = {1:eval}'


def _program(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o755)


def _run(folder: Path, words: Sequence[str], env: dict[str, str]) -> str:
    ran = subprocess.run(
        words, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return ran.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with spaces on its path, and in it the Makefile, a Python that only makes folders
    and a uv that only notes how it is called."""
    folder = tmp_path / "a b" / "c d"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", folder)
    _program(folder / "python", PYTHON)
    _program(folder / "uv-that-notes", UV)
    return folder


@pytest.fixture
def without_uv(tmp_path: Path) -> dict[str, str]:
    """An environment in which there is no uv."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "cp", "make", "mkdir"):
        (programs / name).symlink_to(shutil.which(name) or name)
    return {"PATH": str(programs)}


def test_make_installs_into_a_checkout_whose_path_has_spaces(
    checkout: Path, without_uv: dict[str, str]
) -> None:
    for target in ("setup", "demo"):
        _run(checkout, ("make", target, "PYTHON=./python"), without_uv)
    uv = ".cache/uv/bin/uv true system,mozilla"
    assert (checkout / "noted").read_text().splitlines() == [
        f"{uv} sync --frozen --quiet",
        f"{uv} sync --frozen --quiet --no-dev --inexact",
        f"{uv} run --frozen --no-sync pml demo",
    ]
    assert {each.name for each in checkout.parents[1].iterdir()} == {"a b", "bin"}
    assert [each.name for each in checkout.parent.iterdir()] == ["c d"]


def test_certificates_that_the_user_chose_are_kept(
    checkout: Path, without_uv: dict[str, str]
) -> None:
    chosen = {"UV_SYSTEM_CERTS": "false", "DENO_TLS_CA_STORE": "mozilla"}
    _run(checkout, ("make", "setup", "PYTHON=./python"), without_uv | chosen)
    assert " false mozilla " in (checkout / "noted").read_text()


def test_a_commit_checks_changed_files_alone(tmp_path: Path) -> None:
    for name in (".pre-commit-config.yaml", "pyproject.toml", "tools/lint/docstrings.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    (tmp_path / ".gitignore").write_text(".venv\n.cache\n")
    # A hook that runs this test has its own repository in them.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env = {**ours, "GIT_CONFIG_GLOBAL": os.devnull, "PRE_COMMIT_HOME": str(tmp_path / ".cache")}
    (tmp_path / "old.py").write_text(FAULTY)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "a")):
        assert _run(tmp_path, (*git, *words), env) == ""
    (tmp_path / "new.py").write_text(FAULTY)
    _run(tmp_path, ("git", "add", "."), env)
    said = _run(tmp_path, (sys.executable, "-m", "pre_commit", "run"), env)
    assert said.count("Failed") == 3, said
    assert "new.py" in said
    assert (tmp_path / "new.py").read_text().endswith("x = {1: eval}\n")
    assert (tmp_path / "old.py").read_text() == FAULTY
