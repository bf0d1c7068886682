"""Migrations of the last release: each schema's files with their digests.

`python -m tools.release.migrations write` takes the present ones; `make release` asks for that.
tests/upgrade compares: a released migration never changes, and a new one leaves what the release
uses (docs/operations.md).
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from pml_common.storage.migrations import read_migrations

FILE = Path(__file__).with_suffix(".json")
SCHEMAS = ("gateway", "learner", "registry")

Digests = Mapping[str, Mapping[str, str]]


def present() -> Digests:
    """Return the sha256 of every migration, by schema and name."""
    return {
        schema: {each.name: each.sha256 for each in read_migrations(f"pml_{schema}")}
        for schema in SCHEMAS
    }


def released() -> Digests:
    """Return those of the last release."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def main(action: str) -> int:
    """Run `write` or `check`; the exit code is 1 if the file lacks present migrations."""
    text = json.dumps(present(), indent=2, sort_keys=True) + "\n"
    if action == "write":
        FILE.write_text(text, encoding="utf-8")
        return 0
    if FILE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{FILE}: not the present migrations - run `make released-migrations`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "check"))
