"""SQL that lives in SQL: `-- name: some-name` starts each statement of a .sql file."""

import re
from collections.abc import Mapping
from importlib.resources import files

_HEADING = re.compile(r"^--\s*name:\s*([a-z][a-z0-9-]*)\s*$", re.MULTILINE)


def parse_queries(text: str) -> Mapping[str, str]:
    """Statements by name. Raises ValueError on a name given twice."""
    parts = _HEADING.split(text)[1:]
    names, bodies = parts[0::2], [body.strip() for body in parts[1::2]]
    if len(set(names)) < len(names):
        raise ValueError(f"a query name is given twice among {', '.join(names)}")
    return dict(zip(names, bodies, strict=True))


def load_queries(package: str) -> Mapping[str, str]:
    """All statements in `<package>/sql/queries/*.sql`. Raises ValueError on a clash of names."""
    folder = files(package).joinpath("sql/queries")
    texts = [
        entry.read_text(encoding="utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".sql")
    ]
    return parse_queries("\n".join(texts))
