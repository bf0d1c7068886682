"""Errors of programs that end before what they began."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunWorkflow
from pml_executor.domain.journal import Call
from pml_executor.domain.protocol import DroppedPromise, Returned

_CHOOSES: Final = re.compile(r"""\bPromise\s*(?:\?\.|\.|\[\s*["'`])\s*(?:all|any|race)\b""")
"""`Promise.race` and `any` leave the calls that lose, `all` those beside one that failed."""


def left_under_way(
    command: RunWorkflow, returned: Returned, calls: Mapping[int, Call]
) -> WorkflowError | None:
    """Return the error of a program that ended before it should have; None if it left nothing, or
    only calls that may be the losers of a choice between promises."""
    first = next(iter(returned.dropped), None)
    open_calls = [calls[number] for number in returned.under_way if number in calls]
    if first is None and (not open_calls or _chooses(command)):
        return None
    named = ", ".join(dict.fromkeys(f"{call.tool} ({call.node_id})" for call in open_calls))
    parts = [*_places(returned), *([f"not answered yet: {named}"] if named else [])]
    message = (
        f"the program ended while it was still at work ({'; '.join(parts)}): what would have "
        "followed never ran, and a failure there is not seen. Write await before each call, and "
        "before each call of an async function of yours, as await main() or return await main()."
    )
    is_own = first is not None and first.chain == ""
    return WorkflowError(
        kind="user_error",
        message=message,
        node_id=open_calls[0].node_id if open_calls else None,
        line=first.line if first is not None and is_own else None,
        column=first.column if first is not None and is_own else None,
    )


def _places(returned: Returned) -> Iterator[str]:
    for one in returned.dropped:
        yield f"{_within(one)}line {one.line}, column {one.column} is not awaited"


def _within(one: DroppedPromise) -> str:
    return f"{one.chain}, " if one.chain else ""


def _chooses(command: RunWorkflow) -> bool:
    texts = (command.instrumented, *(each.instrumented for each in command.injected))
    return any(_CHOOSES.search(text) for text in texts)
