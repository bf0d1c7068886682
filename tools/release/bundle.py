"""The manifests of a release: one archive, the same bytes for the same commit."""

import gzip
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
CONTENTS = (
    "LICENSE",
    "deploy/README.md",
    "deploy/k8s",
    "docs/kubernetes.md",
    "docs/operations.md",
    "tools/credentials.py",
    "tools/k8s/nats_users.py",
    "tools/k8s/secrets.py",
)
"""Files that docs/kubernetes.md uses, at the paths that it names."""


def build_bundle(folder: Path, version: str, epoch: int) -> Path:
    """Write the archive into a folder; `epoch` is the time of all its entries."""
    name = f"pml-deploy-{version}"
    archive = folder / f"{name}.tar.gz"
    with (
        archive.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=epoch) as packed,
        tarfile.open(mode="w", fileobj=packed, format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in tracked():
            data = (ROOT / path).read_bytes()
            entry = tarfile.TarInfo(str(PurePosixPath(name, path)))
            entry.size, entry.mtime, entry.mode = len(data), epoch, 0o644
            tar.addfile(entry, BytesIO(data))
    return archive


def tracked() -> list[str]:
    """Return the files that belong into the archive, as version control has them, sorted."""
    listing = ("git", "ls-files", "-z", "--", *CONTENTS)
    found = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(name for name in found.split("\0") if name)
