"""Name the campaigns that a change needs before it lands: `python -m tools.gate.needed [BASE]`.

BASE is the commit before the change (default: the last one); uncommitted changes count. `--json`
prints the parts with their subjects and commands.
"""

import argparse
import json
import subprocess
import sys

from tools.gate.campaigns import PARTS, needed


def changed_since(base: str) -> list[str]:
    """Return the paths of all files that differ from a commit, new ones included.

    Raises CalledProcessError for an unknown commit.
    """
    differing = _git("diff", "--name-only", "--no-renames", base)
    return differing + _git("ls-files", "--others", "--exclude-standard")


def _git(*words: str) -> list[str]:
    return subprocess.run(
        ["git", *words], check=True, capture_output=True, text=True
    ).stdout.splitlines()


def main() -> int:
    """Print what is needed; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", nargs="?", default="HEAD", help="the commit before the change")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    try:
        changed = changed_since(given.base)
    except subprocess.CalledProcessError as error:
        print(f"{given.base} is no commit that git knows: {error.stderr.strip()}", file=sys.stderr)
        return 2
    found = needed(changed)
    commands = {part.name: " ".join(part.command) for part in PARTS}
    if given.json:
        rows = [
            {"part": part, "because": subjects, "command": commands[part]}
            for part, subjects in found.items()
        ]
        print(json.dumps(rows, indent=2))
        return 0
    for part, subjects in found.items():
        print(f"make nightly ARGS='--only {part}'   # {', '.join(subjects)}")
    if not found:
        print(f"{len(changed)} changed files need no campaign: make lint and make test suffice")
    return 0


if __name__ == "__main__":
    sys.exit(main())
