"""Completes an image's bill of materials (CycloneDX JSON) with what is no Python package.

Runs inside the build: `sbom.py SERVICE BILL ROOT…` prints BILL, of the Python packages, with the
Debian packages recorded below each ROOT (rootfs.py) and the image as its subject.
"""

import json
import platform
import sys
from email.parser import Parser
from pathlib import Path


def main() -> None:
    """Print the completed bill."""
    service, bill, *roots = sys.argv[1:]
    told = json.loads(Path(bill).read_text(encoding="utf-8"))
    recorded = [path for root in roots for path in Path(root).glob("var/lib/dpkg/status.d/*")]
    packages = {path.name: component(path) for path in recorded}
    told["components"] += [python(), *(packages[name] for name in sorted(packages))]
    subject = {"type": "container", "bom-ref": f"pml-{service}", "name": f"pml-{service}"}
    told.setdefault("metadata", {})["component"] = subject
    json.dump(told, sys.stdout, indent=1, sort_keys=True)


def python() -> dict[str, str]:
    """Build the component of the interpreter."""
    version = platform.python_version()
    reference = f"pkg:generic/python@{version}"
    return {
        "type": "application",
        "bom-ref": reference,
        "name": "python",
        "version": version,
        "purl": reference,
    }


def component(status: Path) -> dict[str, str]:
    """Build the component of one Debian package from its status."""
    fields = Parser().parsestr(status.read_text(encoding="utf-8"))
    name, version, architecture = fields["Package"], fields["Version"], fields["Architecture"]
    reference = f"pkg:deb/debian/{name}@{version}?arch={architecture}"
    return {
        "type": "library",
        "bom-ref": reference,
        "name": name,
        "version": version,
        "purl": reference,
    }


if __name__ == "__main__":
    main()
