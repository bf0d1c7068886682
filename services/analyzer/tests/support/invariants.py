"""Invariants of every outcome of an analysis, whatever the text."""

import json
from collections.abc import Iterator

from pml_analysis.analysis import Analysis, Rejection
from pml_analysis.report import to_json
from pml_analysis.syntax.parser import parse
from pml_analysis.syntax.source import Source

_BEYOND_A_LINE = 3
"""Columns that a place may lie behind its line: at its end and in the characters that end it."""


def faults(text: str, outcome: Analysis | Rejection) -> list[str]:
    """Return all violations of an outcome."""
    found = list(_places(text, outcome))
    json.dumps(to_json(outcome), allow_nan=False)
    if isinstance(outcome, Rejection):
        found += [] if outcome.diagnostics else ["no reason is given"]
    else:
        found += [*_ids(outcome), *_edges(outcome), *_instrumented(text, outcome)]
    return found


def _places(text: str, outcome: Analysis | Rejection) -> Iterator[str]:
    """Check that every place is one in the text."""
    source = Source(text)
    places = [(told.line, told.column) for told in outcome.diagnostics]
    if isinstance(outcome, Analysis):
        places += [(node.line, node.column) for node in outcome.structure.nodes]
        places += [(call.line, call.column) for call in outcome.dynamic_calls]
    for line, column in places:
        if not 1 <= line <= source.line_count:
            yield f"line {line} of {source.line_count}"
        elif not 1 <= column <= len(source.line(line)) + _BEYOND_A_LINE:
            yield f"{line}:{column} lies behind its line"


def _ids(analysis: Analysis) -> Iterator[str]:
    """Check that ids are unique and count, kind by kind."""
    for kind in "ndlfj":
        ids = [node.id for node in analysis.structure.nodes if node.id[0] == kind]
        numbers = [int(node_id[1:]) for node_id in ids]
        if len(set(ids)) != len(ids) or (kind in "ndl" and numbers != sorted(numbers)):
            yield f"ids are {ids}"


def _edges(analysis: Analysis) -> Iterator[str]:
    """Check that every edge has two ends and is there once."""
    nodes, edges = analysis.structure.nodes, analysis.structure.edges
    known = {node.id for node in nodes}
    for edge in edges:
        if not {edge.from_, edge.to} <= known:
            yield f"{edge.from_} → {edge.to} has an end that is no node"
    if len({edge.model_dump_json() for edge in edges}) != len(edges):
        yield "an edge is there twice"
    called = {node_id for tool in analysis.decision.tools for node_id in tool.node_ids}
    if not called <= known:
        yield f"the decision names {called - known}"


def _instrumented(text: str, analysis: Analysis) -> Iterator[str]:
    """Check that the instrumented program is the text with insertions: it still parses, and its
    lines are the author's."""
    after = analysis.instrumented
    if parse(Source(after)).root_node.has_error:
        yield f"what runs does not parse: {after!r}"
    if Source(after).line_count != Source(text).line_count:
        yield "what runs has other lines"
    kept, at = "", 0
    for start, end in analysis.insertions:
        kept += after[at:start]
        at = end
    if kept + after[at:] != text:
        yield "what runs is not the text with insertions"
