"""Build a release into dist/: packages, manifests, images and checksums.

A commit is released that is clean, has the tag of its version and says in the changelog what is
new; `--rehearse` builds any other and says what it lacks. Everything but images and their bills has
the same bytes whenever and wherever the commit is built (`make release-check`).
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.images.build import SERVICES
from tools.images.engine import NoEngine, find_engine
from tools.release.bundle import build_bundle
from tools.release.readiness import commit_time, problems
from tools.release.requirements import SUMS, checksums, write_requirements
from tools.release.version import ROOT, declared
from tools.release.weights import build_weights

DIST = ROOT / "dist"
IMAGES = "images.txt"


def main() -> int:
    """Build what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-images", action="store_true", help="where no engine is reached")
    parser.add_argument("--unpinned", action="store_true", help="base images of one's own")
    parser.add_argument("--rehearse", action="store_true", help="build what is no release yet")
    parser.add_argument("--out", type=Path, default=DIST, help="folder, which is emptied (dist)")
    given = parser.parse_args()
    lacking = list(problems())
    for each in lacking:
        print(f"no release: {each}", file=sys.stderr)
    if lacking and not given.rehearse:
        return 1
    try:
        if not given.no_images:
            find_engine()
        build(given.out)
        if not given.no_images:
            build_images(given.out, ["--unpinned" if given.unpinned else "--pinned"])
        write_sums(given.out)
    except NoEngine as error:
        told = "`make release ARGS=--no-images` releases without them"
        print(f"images cannot be built: {error}; {told}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(map(str, error.cmd[:4]))} failed: {error.stderr or ''}", file=sys.stderr)
        return 1
    if given.no_images:
        print("WITHOUT IMAGES: this release has none, as --no-images asked", file=sys.stderr)
    if lacking:
        print("A REHEARSAL, no release: see above", file=sys.stderr)
    return 0


def build(folder: Path) -> None:
    """Build packages, requirements and manifests into a folder. Raises CalledProcessError."""
    version, epoch = declared(), commit_time()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    build_packages(folder, epoch)
    write_requirements(folder, version, build_weights(folder))
    build_bundle(folder, version, epoch)


def build_packages(folder: Path, epoch: int) -> None:
    """Build wheel and sdist of every package of the workspace. Raises CalledProcessError."""
    command = (
        os.environ.get("UV", "uv"),
        "build",
        "--all-packages",
        "--quiet",
        "--out-dir",
        folder,
    )
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    subprocess.run(command, cwd=ROOT, check=True, env=environment, timeout=600)
    (folder / ".gitignore").unlink(missing_ok=True)


def build_images(folder: Path, options: Sequence[str]) -> None:
    """Build the images; write the id of each, beside the bills. Raises CalledProcessError."""
    command = (sys.executable, "-m", "tools.images.build", *options)
    subprocess.run(command, cwd=ROOT, check=True)
    bills = folder / "images"
    if bills != DIST / "images":
        shutil.copytree(DIST / "images", bills)
    engine, version = find_engine(), declared()
    names = [f"pml-{service}:{version}" for service in SERVICES]
    ids = [engine.run("image", "inspect", "--format", "{{.Id}}", name) for name in names]
    lines = [f"{name} {found}\n" for name, found in zip(names, ids, strict=True)]
    (bills / IMAGES).write_text("".join(lines), encoding="utf-8")


def write_sums(folder: Path) -> None:
    """Write the checksums of everything, for `sha256sum --check`."""
    sums = checksums(folder)
    text = "".join(f"{found}  {name}\n" for name, found in sums.items())
    (folder / SUMS).write_text(text, encoding="utf-8")
    print(f"{len(sums)} files in {folder}, with their checksums in {SUMS}")


if __name__ == "__main__":
    sys.exit(main())
