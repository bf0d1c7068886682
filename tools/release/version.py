"""The version that all packages have in common, and every place where it stands.

`python -m tools.release.version` checks that they agree; `… set X.Y.Z` writes it.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_NUMBER = r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?"
VERSION = re.compile(_NUMBER)
"""Three numbers, and of a candidate `rc1`: the same in PEP 440, in tags and in images' names."""

_SERVICE = "(?:gateway|analyzer|executor|learner|registry)"
_PROJECT = (
    rf'^version = "({_NUMBER})"$',
    rf'^  "pml-[a-z]+==({_NUMBER})",$',
)
_LOCKED = (rf'^name = "pml(?:-[a-z]+)?"\nversion = "({_NUMBER})"$',)
_IMAGES = (
    rf'name: pml-{_SERVICE}(?:, newName: [^,\n]+,|\n) +newTag: "({_NUMBER})"',
    rf"pml[-/]{_SERVICE}:({_NUMBER})",
    rf"pml-{_SERVICE}-migrate\.({_NUMBER})",
    rf"PML_VERSION(?:=|: ?|:-)\"?({_NUMBER})",
)
PLACES = {
    "pyproject.toml": _PROJECT,
    "*/*/pyproject.toml": _PROJECT,
    "uv.lock": _LOCKED,
    "deploy/**/*": _IMAGES,
    "docs/*.md": _IMAGES,
}
"""Patterns of files, and what in them is the version: the first group."""


def declared(root: Path = ROOT) -> str:
    """Return the version of the root pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "version"
    ]


def places(root: Path = ROOT) -> Iterator[tuple[Path, re.Match[str]]]:
    """Every file with the version, and each match."""
    for path, patterns in _files(root):
        text = path.read_text(encoding="utf-8")
        for pattern in patterns:
            for match in re.finditer(pattern, text, re.MULTILINE):
                yield path, match


def disagreements(wanted: str, root: Path = ROOT) -> list[str]:
    """Say where another version stands, as file:line."""
    return [
        f"{path.relative_to(root)}:{_line(match)}: {match[1]}, not {wanted}"
        for path, match in places(root)
        if match[1] != wanted
    ]


def set_version(wanted: str, root: Path = ROOT) -> list[Path]:
    """Write the version everywhere; return the changed files. Raises ValueError."""
    if VERSION.fullmatch(wanted) is None:
        raise ValueError(f"{wanted!r} is no version: 1.2.3, or 1.2.3rc1 for a candidate")
    changed: list[Path] = []
    for path, patterns in _files(root):
        text = before = path.read_text(encoding="utf-8")
        for pattern in patterns:
            text = re.sub(pattern, lambda match: _with(match, wanted), text, flags=re.MULTILINE)
        if text != before:
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


def _files(root: Path) -> Iterable[tuple[Path, tuple[str, ...]]]:
    for place, patterns in PLACES.items():
        for path in sorted(root.glob(place)):
            if path.is_file():
                yield path, patterns


def _with(match: re.Match[str], wanted: str) -> str:
    start, end = match.span(1)
    text, offset = match[0], match.start()
    return text[: start - offset] + wanted + text[end - offset :]


def _line(match: re.Match[str]) -> int:
    return match.string.count("\n", 0, match.start(1)) + 1


def main(words: list[str]) -> int:
    """Run `set X.Y.Z`, or without words the check."""
    if words[:1] == ["set"] and len(words) == 2:
        try:
            changed = set_version(words[1].removeprefix("v"))
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
        print("\n".join(str(path.relative_to(ROOT)) for path in changed) or "nothing to change")
        return 0
    if words:
        print("usage: python -m tools.release.version [set X.Y.Z]", file=sys.stderr)
        return 2
    problems = disagreements(declared())
    for problem in problems:
        print(f"{problem} - run `make version VERSION={declared()}`", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
