"""Known vulnerabilities of locked third-party packages, by pip-audit.

A package about which the advisory service says nothing at all is a failure, not a pass: pip-audit
itself only skips it.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.dependencies.locked import export

TOOL = "pip-audit==2.10.1"
LOCAL = ("--package", "pml-stack", "--extra", "local")


def main() -> int:
    """Audit what the embedded stack and the images have; print what was found."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(export(*LOCAL), encoding="utf-8")
        command = (
            os.environ.get("UV", "uv"),
            "tool",
            "run",
            "--quiet",
            "--from",
            TOOL,
            "pip-audit",
        )
        options = ("--disable-pip", "--require-hashes", "--progress-spinner", "off", "-f", "json")
        done = subprocess.run(
            (*command, *options, "-r", requirements),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    try:
        report = json.loads(done.stdout)
    except ValueError:
        told = done.stderr.strip().rpartition("\n")[2]
        print(
            f"nothing was audited: pip-audit ended with {done.returncode}: {told}", file=sys.stderr
        )
        return 1
    problems = findings(report)
    for each in problems:
        print(each, file=sys.stderr)
    if not problems:
        print(f"{len(report['dependencies'])} packages, no known vulnerability")
    return 1 if problems else 0


def findings(report: dict[str, Any]) -> list[str]:
    """Say what a report of pip-audit has against the lock."""
    packages: list[dict[str, Any]] = report["dependencies"]
    skipped = [each["name"] for each in packages if "skip_reason" in each]
    found = [
        f"{each['name']} {each['version']}: {one['id']} {', '.join(one['aliases'])}, mended in"
        f" {', '.join(one['fix_versions']) or 'no version yet'}"
        for each in packages
        for one in each.get("vulns", ())
    ]
    if not packages:
        found.append("nothing was audited: the report names no package")
    if skipped:
        found.append(
            f"{len(skipped)} of {len(packages)} packages were not audited ({', '.join(skipped[:3])}"
            f"{', …' if len(skipped) > 3 else ''}): the advisories of PyPI are not reached,"
            " or do not know them"
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
