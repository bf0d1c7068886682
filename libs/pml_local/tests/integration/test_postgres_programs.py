"""The copy of Postgres for an account that cannot reach the installed one."""

import subprocess
from pathlib import Path

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.postgres_programs import INSTALLATION, MODULE, copy_installation, postgres_programs

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("name", ["initdb", "postgres"])
def test_a_copied_program_finds_its_libraries(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy_installation(postgres_programs(None).parent, copy)
    program = copy / MODULE / INSTALLATION / "bin" / name
    ran = subprocess.run((program, "--version"), capture_output=True, text=True, timeout=PATIENCE_S)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert " 18" in ran.stdout


def test_a_copy_can_be_used_by_others_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy_installation(postgres_programs(None).parent, copy)
    assert all(path.stat().st_mode & 0o004 for path in (copy, *copy.rglob("*")))
    assert list(tmp_path.iterdir()) == [copy]
