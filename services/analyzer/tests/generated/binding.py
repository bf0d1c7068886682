"""Calls of undisturbed runs, compared with the analysis of their arguments.

A grant binds these arguments: whatever is literal, a part of the caller's arguments, or a part of
an earlier result must be exactly that in every honest run.
"""

import json
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from pydantic import JsonValue

from pml_analysis.analysis import Analysis
from pml_common.binding.fit import ActualCall, Binding
from pml_common.binding.granting import granted_nodes
from pml_common.contracts.grant import Grant
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject

ARGS: Final[JsonObject] = {
    "a": "A",
    "free": "F",
    "s": "fs",
    "n": 2,
    "list": [1, 2],
    "none": None,
    "o": {"k": 1, "field": [0]},
}
"""The arguments that the recorder passes to every program."""


def misfits(analysis: Analysis, ran: dict[str, Any], args: JsonObject = ARGS) -> Iterator[str]:
    """Return why calls of a run, each with a node, differ from the analysis."""
    binding = Binding(_grant(analysis, {tool for tool, _, _ in ran["calls"]}), args)
    seen: dict[str, int] = {}
    for number, (tool, given, node_id) in enumerate(ran["calls"]):
        text = given or "{}"
        if node_id is None or not text.startswith("{"):
            continue
        sent: JsonObject = json.loads(text)
        occurrence = seen[node_id] = seen.get(node_id, -1) + 1
        made = ActualCall(node_id, occurrence, tool, sent, "")
        wrong = binding.mismatch(made, lambda node, n=number: _results(ran, node, n))
        if wrong is not None:
            yield f"call {number} at {node_id} with {given}: {wrong}"


def _results(ran: dict[str, Any], node_id: str, before: int) -> list[JsonValue]:
    """Return the results of a node's calls before another was made."""
    return [
        value
        for number, begun, value in ran["ended"]
        if begun <= before and ran["calls"][number][2] == node_id
    ]


def _grant(analysis: Analysis, tools: Collection[str]) -> Grant:
    return Grant(
        scope=Scope(org="o", project="p"),
        workflow_id=UUID(int=0),
        code_hash="",
        text_hash="",
        args_hash="",
        tools=dict.fromkeys(tools, ""),
        bound=tuple(tools),
        nodes=granted_nodes(analysis.structure.nodes, analysis.capabilities, tools),
        policy_revision="",
        expires_at=datetime(2030, 1, 1, tzinfo=UTC),
    )
