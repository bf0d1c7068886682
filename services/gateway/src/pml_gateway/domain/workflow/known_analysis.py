"""Analyses that hold for further requests of the same program."""

from collections.abc import Callable
from typing import Final

from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.tool import ToolDefinition

MAX_LENGTH: Final = 8 * 1024
"""Characters of the longest program whose analysis is kept."""


def is_lasting(analysis: ExecutionAnalyzed) -> bool:
    """Whether an analysis depends on nothing but the request and the tools that it names. One of a
    program that calls capabilities depends on these, too; a long one takes too much memory."""
    depends = analysis.capabilities or analysis.reads_catalog
    return not depends and len(analysis.code) <= MAX_LENGTH


def is_current(analysis: ExecutionAnalyzed, find: Callable[[str], ToolDefinition | None]) -> bool:
    """Whether every tool that an analysis names is listed as it saw it."""
    for seen in analysis.decision.tools:
        listed = find(seen.tool)
        if listed is None or listed.definition_hash != seen.definition_hash:
            return False
    return True


def of_request(analysis: ExecutionAnalyzed, requested: ExecutionRequested) -> ExecutionAnalyzed:
    """Return an analysis of the same program as that of this request."""
    return analysis.model_copy(
        update={
            "event_id": ids.effect_id(requested.event_id, "execution-analyzed"),
            "workflow_id": requested.workflow_id,
        }
    )
