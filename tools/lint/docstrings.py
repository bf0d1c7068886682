"""Reject docstrings that open with a clause: name the thing, or say what the function does."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OPENERS = frozenset({"What", "Who", "Whose", "Whom", "That", "Where", "Which", "How", "As", "Be"})


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of every string that is a statement: of modules, classes, functions and
    attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
            case _:
                pass


def complaints(path: Path) -> list[str]:
    """Complaints about the docstrings of one file."""
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return [
        f'{path}:{line}: a docstring opens with "{word}"; begin with a noun or an imperative verb'
        for line, text in sorted(docstrings(tree))
        if (word := (text.split(maxsplit=1) or [""])[0].rstrip(",.:")) in OPENERS
    ]


def main(folders: list[str]) -> int:
    """Check every tracked or untracked Python file in these folders, by default in all."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders],
        check=True,
        capture_output=True,
        text=True,
    )
    paths = [Path(line) for line in listed.stdout.splitlines() if line.endswith(".py")]
    found = [each for path in paths if path.exists() for each in complaints(path)]
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
