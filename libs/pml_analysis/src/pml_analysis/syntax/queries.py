"""Tree-sitter queries by name, for rules that a pattern expresses best (queries/*.scm)."""

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from tree_sitter import Query, QueryCursor
from tree_sitter import Tree as RawTree

from pml_analysis.syntax.parser import code_points, language
from pml_analysis.syntax.source import Source


class Capture(NamedTuple):
    """A match: its name in the query, its range in code points."""

    name: str
    start: int
    end: int


@cache
def _query(name: str) -> Query:
    text = files("pml_analysis").joinpath("queries", f"{name}.scm").read_text(encoding="utf-8")
    return Query(language(), text)


def captures(raw: RawTree, source: Source, query: str) -> list[Capture]:
    """Return the captures of a query, in source order."""
    found = QueryCursor(_query(query)).captures(raw.root_node)
    offsets = code_points(source.text) if found else None
    return sorted(
        (
            Capture(name, *(at if offsets is None else offsets[at] for at in node.byte_range))
            for name, nodes in found.items()
            for node in nodes
        ),
        key=lambda capture: (capture.start, capture.end),
    )
