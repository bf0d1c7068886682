"""Collects what an image needs of the builder's system, without its shell and package manager.

Runs inside the build, on the builder's Python: `rootfs.py system FOLDER` for what all images have,
`rootfs.py packages --beside SYSTEM FOLDER [PROGRAM…]` for what an environment below FOLDER needs
beyond that. Whatever is copied is recorded as its Debian package in /var/lib/dpkg/status.d, where
scanners look for it.
"""

import argparse
import compileall
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from py_compile import PycInvalidationMode

LEFT_OUT = shutil.ignore_patterns(
    *("test", "tests", "idlelib", "turtledemo", "turtle.py", "tkinter", "_tkinter*", "ensurepip"),
    *("lib2to3", "pydoc_data", "config-3*", "site-packages", "dist-packages", "__pycache__"),
    *("nis.*", "_dbm.*", "_gdbm.*", "sitecustomize.py", "EXTERNALLY-MANAGED"),
)
"""Of the standard library: tests, tools of developers, and modules that need further libraries."""

LOADED_LATER = ("libgcc_s.so.1", "libstdc++.so.6", "libnss_dns.so.2", "libnss_files.so.2")
"""Libraries that no program names: threads load the first, names of hosts the last ones."""

FILES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/os-release", "/etc/ld.so.conf")
USER = "pml:x:10001:10001::/tmp:/nonexistent\n"
_NEEDED = re.compile(r"(?:=> )?(/\S+) \(0x")
_ELF = b"\x7fELF"


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("system", "packages"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("programs", nargs="*", type=Path)
    given = parser.parse_args()
    if given.kind == "system":
        system(given.folder)
    else:
        packages(given.folder, given.beside, given.programs)


def system(root: Path) -> None:
    """Collect Python, the libraries that it needs, certificates and the user."""
    for name in ("bin", "lib", "lib64", "sbin"):  # as in every Debian since 12
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    library = Path(sysconfig.get_path("stdlib"))
    python = Path(sys.executable)
    shutil.copytree(library, below(root, library), ignore=LEFT_OUT, ignore_dangling_symlinks=True)
    compileall.compile_dir(
        below(root, library),
        quiet=1,
        stripdir=root,
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )
    copied = [path for path in library.rglob("*.py") if below(root, path).exists()]
    for path in (python, *FILES, *Path("/etc/ld.so.conf.d").glob("*.conf")):
        copied += copy(Path(path), root)
    programs = (python, *elf_files(below(root, library)))
    copied += copy_all((*needed_by(programs), *loaded_later()), root)
    (root / "etc/passwd").write_text(f"root:x:0:0::/:/nonexistent\n{USER}")
    (root / "etc/group").write_text("root:x:0:\npml:x:10001:\n")
    (root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    (root / "tmp").mkdir(mode=0o1777)
    (root / "tmp").chmod(0o1777)
    (root / "run").mkdir()
    record(copied, root)
    subprocess.run(["ldconfig", "-X", "-r", root], check=True)


def packages(folder: Path, beside: Path, programs: Iterable[Path]) -> None:
    """Collect what an environment and `programs` need that is not in `beside`, and drop the
    environment's scripts, which name the builder's paths."""
    environment = folder / "opt/pml"
    for path in (environment / "bin").iterdir():
        if not path.is_symlink() and path.open("rb").read(4) != _ELF:
            path.unlink()
    wanted = [*programs, *needed_by((*programs, *elf_files(environment)))]
    outside = [path for path in wanted if not path.is_relative_to(environment)]
    missing = [path for path in outside if not below(beside, path.resolve()).exists()]
    record(copy_all(missing, folder), folder)


def needed_by(programs: Iterable[Path]) -> list[Path]:
    """The libraries that the loader opens for these programs or libraries. Raises SystemExit if
    one is missing."""
    found: set[Path] = set()
    for program in programs:
        run = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
        if "not found" in run.stdout:
            raise SystemExit(f"{program} needs what the base image does not have:\n{run.stdout}")
        found.update(map(Path, _NEEDED.findall(run.stdout)))
    return sorted(found)


def loaded_later() -> list[Path]:
    """Find the libraries of LOADED_LATER; those of names are inside glibc from 2.34 on."""
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    lines = (line.split() for line in listed.splitlines()[1:] if " => " in line)
    return [Path(words[-1]) for words in lines if words[0] in LOADED_LATER]


def elf_files(folder: Path) -> list[Path]:
    """The programs and libraries below a folder."""
    regular = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in regular if not path.is_symlink() and is_elf(path)]


def is_elf(path: Path) -> bool:
    """Whether a file is a program or library."""
    with path.open("rb") as file:
        return file.read(4) == _ELF


def copy_all(paths: Iterable[Path], root: Path) -> list[Path]:
    """Copy each with the links that lead to it; return what was copied."""
    return [copied for path in paths for copied in copy(path, root)]


def copy(path: Path, root: Path) -> list[Path]:
    """Copy a file, and every link from `path` to it, to the same places below `root`."""
    place = path.parent.resolve() / path.name
    target = below(root, place)
    target.parent.mkdir(parents=True, exist_ok=True)
    if not place.is_symlink():
        if not target.exists():
            shutil.copy2(place, target)
        return [place]
    link = place.readlink()
    if not target.is_symlink():
        target.symlink_to(link)
    return copy(place.parent / link, root)


def below(root: Path, path: Path) -> Path:
    """The place of an absolute path below `root`."""
    return root / path.relative_to("/")


def record(files: Iterable[Path], root: Path) -> None:
    """Write the status of each Debian package that has one of these files."""
    folder = root / "var/lib/dpkg/status.d"
    folder.mkdir(parents=True, exist_ok=True)
    for name in owners(files):
        status = subprocess.run(["dpkg", "-s", name], capture_output=True, text=True, check=True)
        (folder / name.split(":")[0]).write_text(status.stdout)


def owners(files: Iterable[Path]) -> list[str]:
    """The packages that have one of these files; those from before /usr was merged list /lib."""
    paths = {place for file in files for place in (str(file), str(file).removeprefix("/usr"))}
    if not paths:
        return []
    command = ["dpkg", "-S", *sorted(paths)]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = (line for line in listed.splitlines() if not line.startswith("diversion"))
    return sorted({name for line in lines for name in line.split(": ")[0].split(", ")})


if __name__ == "__main__":
    main()
