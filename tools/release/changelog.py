"""The changelog's sections: one for each version, and what no release has yet.

`python -m tools.release.changelog cut X.Y.Z [DATE]` makes the unreleased section that version's.
"""

import re
import sys
from datetime import UTC, date, datetime
from pathlib import Path

FILE = Path(__file__).parents[2] / "CHANGELOG.md"
UNRELEASED = "## Unreleased"


def section(text: str, version: str) -> str | None:
    """Return what the changelog says of a version, without its heading; None without a section."""
    head = rf"^## {re.escape(version)} - \d{{4}}-\d{{2}}-\d{{2}}\n"
    found = re.search(rf"{head}(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else None


def cut(text: str, version: str, on: date) -> str:
    """Give the unreleased section the version's heading, below an empty one. Raises ValueError."""
    if section(text, version) is not None:
        raise ValueError(f"the changelog has a section {version} already")
    found = re.search(rf"^{UNRELEASED}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise ValueError(f"the changelog has nothing under `{UNRELEASED}`")
    body = f"{UNRELEASED}\n\n## {version} - {on.isoformat()}\n\n{found[1].strip()}\n"
    return (
        text[: found.start()] + body + ("\n" if text[found.end() :] else "") + text[found.end() :]
    )


def main(words: list[str]) -> int:
    """Run `cut X.Y.Z [DATE]`."""
    if words[:1] != ["cut"] or len(words) not in (2, 3):
        print("usage: python -m tools.release.changelog cut X.Y.Z [YYYY-MM-DD]", file=sys.stderr)
        return 2
    on = date.fromisoformat(words[2]) if len(words) == 3 else datetime.now(UTC).date()
    try:
        text = cut(FILE.read_text(encoding="utf-8"), words[1].removeprefix("v"), on)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
