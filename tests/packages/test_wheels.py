"""Wheels hold every file of their packages: code, SQL, queries of grammars, the sandbox."""

import os
import shutil
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_executor import settings
from pml_executor.settings import ExecutorSettings

ROOT = Path(__file__).parents[2]
PROJECTS = sorted(path.parent for path in ROOT.glob("*/*/pyproject.toml"))
LEFT_OUT = "_test.ts"
"""Tests that lie beside the code."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build all wheels, from this checkout alone."""
    folder = tmp_path_factory.mktemp("wheels")
    uv = os.environ.get("UV") or shutil.which("uv")
    assert uv is not None, "uv is not on the path: run this with `uv run pytest`, or `make test`"
    command = [uv, "build", "--all-packages", "--wheel", "--offline", "--quiet", "-o", folder]
    subprocess.run(command, cwd=ROOT, check=True, timeout=PATIENCE_S)
    return folder


def test_every_project_has_a_wheel(wheels: Path) -> None:
    assert len(PROJECTS) == 11
    assert {path.name.split("-")[0] for path in wheels.glob("*.whl")} == {
        package_of(project) for project in PROJECTS
    }


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_a_wheel_holds_what_version_control_has_of_its_package(wheels: Path, project: Path) -> None:
    source = project / "src"
    listing = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", ".")
    listed = subprocess.run(listing, cwd=source, check=True, capture_output=True, text=True)
    kept = {name for name in listed.stdout.split("\0") if name and (source / name).is_file()}
    (wheel,) = wheels.glob(f"{package_of(project)}-*.whl")
    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if not name.endswith("/")}
    code = {name for name in packed if ".dist-info/" not in name}
    assert code == {name for name in kept if not name.endswith(LEFT_OUT)}


def test_the_sandbox_is_read_from_the_package() -> None:
    runtime = ExecutorSettings().executor_runtime
    assert runtime.parent == Path(settings.__file__).parent
    assert (runtime / "host.js").is_file()


def package_of(project: Path) -> str:
    """The import name of the package in a project's folder."""
    (package,) = (path.name for path in (project / "src").iterdir() if path.name.startswith("pml_"))
    return package
