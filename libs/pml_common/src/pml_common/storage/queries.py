"""Named SQL statements from .sql files, and text for their parameters.

`-- name: some-name` starts each statement.
"""

import re
from collections.abc import Mapping
from importlib.resources import files

_HEADING = re.compile(r"^--\s*name:\s*([a-z][a-z0-9-]*)\s*$", re.MULTILINE)


def parse_queries(text: str) -> Mapping[str, str]:
    """Parse statements by name. Raises ValueError on a duplicate name."""
    parts = _HEADING.split(text)[1:]
    names, bodies = parts[0::2], [body.strip() for body in parts[1::2]]
    if len(set(names)) < len(names):
        raise ValueError(f"a query name is given twice among {', '.join(names)}")
    return dict(zip(names, bodies, strict=True))


def load_queries(package: str) -> Mapping[str, str]:
    """Load all statements of `<package>/sql/queries/*.sql`. Raises ValueError on a duplicate
    name."""
    folder = files(package).joinpath("sql/queries")
    texts = [
        entry.read_text(encoding="utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".sql")
    ]
    return parse_queries("\n".join(texts))


def storable(text: str) -> str:
    """Replace each NUL, which `text` columns refuse (`json` ones accept it), with U+FFFD."""
    return text.replace("\x00", "\ufffd")
