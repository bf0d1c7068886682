"""Handles `list-tool-usage`, `give-feedback` and `list-feedback`."""

from collections.abc import Awaitable, Callable

from pml_common.bus.errors import BusUnavailable, QueryFailed
from pml_common.contracts.base import Message
from pml_common.contracts.cursors import BadCursor
from pml_common.contracts.learner import (
    Feedback,
    FeedbackPage,
    GiveFeedback,
    ListFeedback,
    ListToolUsage,
    ToolUsagePage,
)
from pml_learner.domain.opinions import use_judged
from pml_learner.ports import TraceStore

Publish = Callable[[Message], Awaitable[object]]


async def on_list_tool_usage(query: ListToolUsage, traces: TraceStore) -> ToolUsagePage:
    """Return a page of the client's scope. Raises QueryFailed `invalid` for a foreign cursor."""
    try:
        return await traces.usage(query)
    except BadCursor as error:
        raise QueryFailed("invalid", str(error)) from error


async def on_give_feedback(query: GiveFeedback, traces: TraceStore, publish: Publish) -> Feedback:
    """Store an opinion, and tell what the opinions of the run weigh now; a repetition changes
    nothing. Raises QueryFailed: `not_found`; `unavailable` where the opinion is stored and could
    not be told."""
    stored = await traces.judge(query)
    if stored is None:
        raise QueryFailed(
            "not_found",
            f"no run of workflow {query.workflow_id} is stored: give the workflow_id of an answer "
            "that succeeded or failed (not of a dry run), a moment after it",
        )
    weights = await traces.weights(query.scope, query.workflow_id)
    if weights is not None:
        try:
            await publish(use_judged(query.scope, query.workflow_id, weights))
        except BusUnavailable as error:
            raise QueryFailed("unavailable", f"{error}; repeat the opinion") from error
    return stored


async def on_list_feedback(query: ListFeedback, traces: TraceStore) -> FeedbackPage:
    """Return a page of the client's scope. Raises QueryFailed `invalid` for a foreign cursor."""
    try:
        return await traces.judged(query)
    except BadCursor as error:
        raise QueryFailed("invalid", str(error)) from error
