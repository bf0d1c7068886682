"""The file by which pip installs a release with exactly the locked packages, all by hash."""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from tools.release.version import ROOT
from tools.release.weights import PACKAGE, local_version

SUMS = "SHA256SUMS"
HEAD = """\
# pml {version} with the embedded stack, every package by version and hash. In this folder:
# pip install --require-hashes --find-links . -r requirements.txt
"""
EXPORT = ("export", "--frozen", "--no-dev", "--package", "pml-stack", "--extra", "local")
_PLAIN = ("--no-emit-workspace", "--no-annotate", "--no-header", "--quiet")


def locked(*more: str) -> str:
    """Return the locked packages of the embedded stack, in the format of pip."""
    command = (os.environ.get("UV", "uv"), *EXPORT, *_PLAIN, *more)
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def write_requirements(folder: Path, version: str, weights: Path) -> Path:
    """Write the file beside the wheels of a release."""
    text = with_local_weights(locked(), weights)
    wheels = sorted(path for path in folder.glob("pml_*.whl"))
    own = "".join(
        pinned(path.name.split("-")[0].replace("_", "-"), version, [path]) for path in wheels
    )
    extra = own.replace("pml-stack==", "pml-stack[local]==")
    file = folder / "requirements.txt"
    file.write_text(HEAD.format(version=version) + extra + text, encoding="utf-8")
    return file


def with_local_weights(text: str, weights: Path) -> str:
    """Name the wheel of the weights that has no dependencies instead of the locked one."""
    found = re.search(rf"^{PACKAGE}==(\S+)(?: \\\n    --hash=\S+)*\n", text, re.MULTILINE)
    if found is None:
        raise ValueError(
            f"uv.lock has no {PACKAGE}: tools/release/weights.py names another package"
        )
    entry = pinned(PACKAGE, local_version(found[1]), [weights])
    return text[: found.start()] + entry + text[found.end() :]


def pinned(name: str, version: str, files: Iterable[Path]) -> str:
    """Build an entry of pip's format."""
    hashes = [f"    --hash=sha256:{digest(file)}" for file in files]
    return " \\\n".join([f"{name}=={version}", *hashes]) + "\n"


def digest(file: Path) -> str:
    """Return the sha256 of a file, in hex."""
    with file.open("rb") as opened:
        return sha256(opened.read()).hexdigest()


def checksums(folder: Path) -> Mapping[str, str]:
    """Return the sha256 of every file below a folder, by its path there, sorted."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    return {str(path.relative_to(folder)): digest(path) for path in paths}
