"""Every form in which a program reaches a tool, and a simple search of a tree for the calls."""

from itertools import product
from typing import Final

import tree_sitter_typescript
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from pml_analysis.analysis import Analysis
from pml_analysis.syntax.source import Source
from pml_common.contracts.tool import ToolDefinition
from services.analyzer.tests.support.library import described, library

SERVERS: Final = ("fs", "git", "db")
TOOLS: Final = ("t0", "t1", "t2", "t3")
CATALOGUE: Final = tuple(
    ToolDefinition(server=server, name=name) for server, name in product(SERVERS, TOOLS)
)
KNOWN: Final = library(
    described("zz:one", "return await mcp.fs.t0({});"),
    described("zz:two", "return await capabilities.zz_one({});"),
)

_LANGUAGE = Language(tree_sitter_typescript.language_typescript())
_CALLS = Query(_LANGUAGE, "(call_expression function: (_) @callee) @call")
_ROOTS: Final = frozenset(
    {"mcp", "capabilities", "zz_capability", "zz_part", "zz_server", "zz_some", "zz_tool"}
)
PROLOGUE: Final = (
    "const zz_tool = mcp.fs.t1, zz_server = mcp.git; const { t2: zz_part } = mcp.db;"
    " let zz_some = mcp.fs.t1; zz_some = mcp.fs.t2;"
    " const { zz_two: zz_capability } = capabilities;"
)
CALLEES: Final = (
    "mcp.fs.t0",
    'mcp["git"].t1',
    "mcp.db['t2']",
    "(mcp.fs).t3",
    "mcp.git!.t0",
    "(mcp as any).db.t1",
    "mcp?.fs?.t2",
    "mcp[zz_key].t3",
    "mcp.git[`t${zz_key}`]",
    "zz_tool",
    "zz_server.t0",
    "zz_server?.t1",
    "zz_part",
    "zz_some",
    "capabilities.zz_one",
    "capabilities['zz_two']",
    "(capabilities as any)?.zz_one",
    "capabilities[zz_key]",
    "zz_capability",
)
"""Forms of callees, after `PROLOGUE`; the values of `zz_key` and `zz_some` are known only at run
time."""

HOLDING: Final = frozenset(
    {"arrow_function", "await_expression", "call_expression", "class", "function_expression"}
)
"""Kinds that a callee may contain and that must not be lost with it."""

_CHAINS: Final = frozenset(
    {
        "as_expression",
        "member_expression",
        "non_null_expression",
        "parenthesized_expression",
        "subscript_expression",
        "type_assertion",
    }
)


def parses(text: str) -> bool:
    """Whether the grammar accepts all of a text."""
    return not parse(text).has_error


def places_of_calls(text: str) -> set[tuple[int, int]]:
    """Return line and column of every call whose callee is a root, part of one, or one of its
    aliases."""
    data, source = text.encode(), Source(text)
    return {
        source.position(len(data[: captured["call"][0].start_byte].decode()))
        for _, captured in QueryCursor(_CALLS).matches(parse(text))
        if _root(captured["callee"][0]) in _ROOTS
    }


def places_of_nodes(analysis: Analysis) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Return line and column of all tasks and capabilities, and of all dynamic calls."""
    called = [node for node in analysis.structure.nodes if node.id.startswith("n")]
    dynamic = analysis.dynamic_calls
    return {(n.line, n.column) for n in called}, {(call.line, call.column) for call in dynamic}


def parse(text: str) -> Node:
    """Return the root of the parser's own tree."""
    return Parser(_LANGUAGE).parse(text.encode()).root_node


def _root(callee: Node) -> str:
    """Return the name that a chain of members begins with."""
    node = callee
    while node.type in _CHAINS:
        node = node.named_children[-1 if node.type == "type_assertion" else 0]
    return text_of(node) if node.type == "identifier" else ""


def text_of(node: Node | None) -> str:
    """Return the text of a node; an empty one of none."""
    return (node.text or b"").decode() if node is not None else ""
